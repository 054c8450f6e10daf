const STEP = 0.05
const SMALLEST = 0.4

/** Makes the texts of a part smaller until they have room (`--fit` in the style sheet), now and when its size changes. */
export function fitTexts(part: HTMLElement): () => void {
  function fit(): void {
    for (let scale = 1; scale > SMALLEST; scale -= STEP) {
      part.style.setProperty('--fit', scale.toFixed(2))
      if (part.scrollHeight <= part.clientHeight && part.scrollWidth <= part.clientWidth) return
    }
  }
  new ResizeObserver(fit).observe(part)
  return fit
}
