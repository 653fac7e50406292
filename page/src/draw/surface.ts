// SPDX-License-Identifier: Apache-2.0
//
// A canvas of the size of its container, however tall the content: the container scrolls, the canvas
// stays and draws what is visible. A second canvas on top is for what follows the pointer.

export class Surface {
  readonly base: CanvasRenderingContext2D;
  readonly overlay: CanvasRenderingContext2D;
  width = 0;
  height = 0;
  private readonly spacer = document.createElement('div');

  constructor(readonly container: HTMLElement, onChange: () => void) {
    const sticky = document.createElement('div');
    sticky.className = 'sticky';
    const canvases = [document.createElement('canvas'), document.createElement('canvas')];
    for (const canvas of canvases) {
      canvas.setAttribute('aria-hidden', 'true');
      sticky.append(canvas);
    }
    container.append(sticky, this.spacer);
    this.base = canvases[0]!.getContext('2d', { alpha: false })!;
    this.overlay = canvases[1]!.getContext('2d')!;
    new ResizeObserver(() => {
      this.fit();
      onChange();
    }).observe(container);
    container.addEventListener('scroll', onChange);
    this.fit();
  }

  get scrollTop(): number {
    return this.container.scrollTop;
  }

  setContentHeight(height: number): void {
    const text = `${Math.max(0, Math.ceil(height))}px`;
    if (this.spacer.style.height !== text) this.spacer.style.height = text;
  }

  // Call before drawing: the browser may have changed the size, or the window moved to another screen.
  fit(): void {
    const width = this.container.clientWidth;
    const height = this.container.clientHeight;
    const ratio = window.devicePixelRatio || 1;
    for (const context of [this.base, this.overlay]) {
      const { canvas } = context;
      if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
        canvas.style.width = `${width}px`;
        canvas.style.height = `${height}px`;
      }
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.width = width;
    this.height = height;
  }
}
