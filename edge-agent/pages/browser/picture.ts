import { slot } from './elements.ts'

/** Shows the picture of a product, or a placeholder without a picture. Hides both if `name` is empty. */
export function showPicture(name: string, hash: string): void {
  const image = slot<HTMLImageElement>('picture-image')
  slot('picture').hidden = name === ''
  image.addEventListener('error', () => showPlaceholder(true), { once: true })
  showPlaceholder(hash === '')
  if (hash === '') image.removeAttribute('src')
  else image.src = `/pictures/${hash}.webp`
}

function showPlaceholder(isShown: boolean): void {
  slot('picture-image').hidden = isShown
  slot('picture-none').classList.toggle('gone', !isShown)
}
