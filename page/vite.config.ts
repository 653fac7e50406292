// SPDX-License-Identifier: Apache-2.0
//
// Builds one HTML file: script and style are put into the page, so that it needs no network.
import { defineConfig, type Plugin } from 'vite';

// The command fills this line; it must be in the page exactly once.
const kRecordingLine = '<script id="recording" type="application/octet-stream"></script>';

function singleFile(): Plugin {
  return {
    name: 'single-file',
    enforce: 'post',
    generateBundle(_options, bundle) {
      const page = bundle['timeline.html'];
      if (page?.type !== 'asset') throw new Error('timeline.html is not in the bundle');
      let html = String(page.source);
      for (const [name, file] of Object.entries(bundle)) {
        if (file === page) continue;
        const text = file.type === 'chunk' ? file.code : String(file.source);
        // "</script" in a string of the code would end the element.
        const inline = file.type === 'chunk'
          ? `<script type="module">${text.replace(/<\/script/g, '<\\/script')}</script>`
          : `<style>${text}</style>`;
        const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
        const tag = file.type === 'chunk'
          ? new RegExp(`<script[^>]*src="[^"]*${escaped}"[^>]*></script>`)
          : new RegExp(`<link[^>]*href="[^"]*${escaped}"[^>]*>`);
        if (!tag.test(html)) throw new Error(`${name} is not referred to by the page`);
        html = html.replace(tag, () => inline);
        delete bundle[name];
      }
      if (html.split(kRecordingLine).length !== 2) throw new Error('the line of the recording is not there once');
      page.source = html;
    },
  };
}

export default defineConfig({
  base: './',
  plugins: [singleFile()],
  build: {
    target: 'es2022',
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 100000000,
    reportCompressedSize: false,
    rollupOptions: {
      input: 'timeline.html',
      // Names without hashes: the same sources give the same bytes.
      output: { entryFileNames: 'page.js', assetFileNames: 'page.[ext]' },
    },
  },
  test: { include: ['tests/*.test.ts'] },
} as Parameters<typeof defineConfig>[0]);
