// SPDX-License-Identifier: Apache-2.0
//
// What is the same in all flame graphs: style and script.
#pragma once

#include <string_view>

namespace understudy::command {

// The classes c0 to c9 are colors of frames.
inline constexpr std::string_view kFlameStyle = R"css(
svg { background: #fbfaf8; font: 12px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono",
  monospace; }
.title { font: 600 17px system-ui, "DejaVu Sans", sans-serif; fill: #23211e; }
.hint { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: #76716a; }
.button { font: 600 12px system-ui, "DejaVu Sans", sans-serif; fill: #a34a12; cursor: pointer; }
.frame { cursor: pointer; }
.frame rect { stroke: #fbfaf8; stroke-width: 1; }
.frame text { fill: #2b2118; pointer-events: none; }
.frame:hover rect { stroke: #23211e; }
.outer { opacity: 0.55; }
.frame.found rect { fill: #b7a5f5; }
.root rect { fill: #dcd8d1; }
.c0 rect { fill: #f8b39c; } .c1 rect { fill: #fbbf8f; } .c2 rect { fill: #fccd87; }
.c3 rect { fill: #fada8c; } .c4 rect { fill: #f3df9c; } .c5 rect { fill: #f5aa86; }
.c6 rect { fill: #fdc69f; } .c7 rect { fill: #f0c27e; } .c8 rect { fill: #f7bba8; }
.c9 rect { fill: #ead189; }
@media (prefers-color-scheme: dark) {
  svg { background: #17161a; }
  .title { fill: #f1eee9; } .hint { fill: #9d978f; } .button { fill: #f2a56f; }
  .frame rect { stroke: #17161a; } .frame text { fill: #fdf3ea; }
  .frame:hover rect { stroke: #f1eee9; }
  .frame.found rect { fill: #6a55c0; } .root rect { fill: #45424a; }
  .c0 rect { fill: #8f3f2a; } .c1 rect { fill: #8f4d23; } .c2 rect { fill: #87571c; }
  .c3 rect { fill: #7d5f1a; } .c4 rect { fill: #6e5f22; } .c5 rect { fill: #96452a; }
  .c6 rect { fill: #8a5230; } .c7 rect { fill: #755119; } .c8 rect { fill: #844335; }
  .c9 rect { fill: #6b5a1e; }
}
)css";

// Places are parts of the whole width, from data-x and data-w.
inline constexpr std::string_view kFlameScript = R"js(
'use strict';
(() => {
  const width = 1180, left = 10, letter = 7.3;
  const frames = Array.from(document.querySelectorAll('.frame'), group => ({
    group, rect: group.querySelector('rect'), text: group.querySelector('text'),
    name: group.dataset.name, bytes: Number(group.dataset.bytes),
    depth: Number(group.dataset.depth), x: Number(group.dataset.x), w: Number(group.dataset.w),
  }));
  const back = document.getElementById('back');
  const found = document.getElementById('found');
  const epsilon = 1e-9;
  function zoom(to) {
    for (const frame of frames) {
      const holds = frame.x <= to.x + epsilon && frame.x + frame.w >= to.x + to.w - epsilon;
      const inside = frame.x >= to.x - epsilon && frame.x + frame.w <= to.x + to.w + epsilon;
      const outer = holds && frame.depth < to.depth;
      const shown = outer || (inside && frame.depth >= to.depth);
      frame.group.style.display = shown ? '' : 'none';
      if (!shown) continue;
      frame.group.classList.toggle('outer', outer);
      const x = left + (outer ? 0 : (frame.x - to.x) / to.w * width);
      const w = outer ? width : frame.w / to.w * width;
      frame.rect.setAttribute('x', x);
      frame.rect.setAttribute('width', w);
      frame.text.setAttribute('x', x + 4);
      const room = Math.floor((w - 8) / letter);
      const letters = Array.from(frame.name);
      frame.text.textContent = letters.length <= room ? frame.name
        : room < 3 ? '' : letters.slice(0, room - 1).join('') + '\u2026';
    }
    back.style.display = to === frames[0] ? 'none' : '';
  }
  function search() {
    const wanted = prompt('Frames whose names contain:');
    if (wanted === null) return;
    let end = -1, bytes = 0;
    for (const frame of frames) {
      const hit = wanted !== '' && frame.name.toLowerCase().includes(wanted.toLowerCase());
      frame.group.classList.toggle('found', hit);
      // Frames come before those within them: what is counted is not counted again.
      if (hit && frame.x >= end - epsilon) { bytes += frame.bytes; end = frame.x + frame.w; }
    }
    const share = frames[0].bytes > 0 ? 100 * bytes / frames[0].bytes : 0;
    found.textContent = wanted === '' ? ''
      : `"${wanted}": ${bytes.toLocaleString('en')} bytes, ${share.toFixed(1)} %`;
  }
  if (frames.length === 0) return;
  for (const frame of frames) frame.group.addEventListener('click', () => zoom(frame));
  back.addEventListener('click', () => zoom(frames[0]));
  document.getElementById('search').addEventListener('click', search);
  document.getElementById('search').style.display = '';
  addEventListener('keydown', event => {
    if (event.key === 'Escape') zoom(frames[0]);
    if (event.key === '/') { event.preventDefault(); search(); }
  });
})();
)js";

}  // namespace understudy::command
