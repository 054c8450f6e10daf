import { isLanguage, textsOf } from '../texts/catalogue.ts'
import type { RecentResult } from '../model/wire.ts'
import type { Texts } from '../texts/texts.ts'

/** Device and language of this page, as the server wrote them. */
export interface PageContext {
  deviceId: string
  texts: Texts
}

/** Reads the context that the server wrote into the page. */
export function readPageContext(): PageContext {
  const { lang } = document.documentElement
  return { deviceId: document.body.dataset['device'] ?? '', texts: textsOf(isLanguage(lang) ? lang : 'en') }
}

/** Results that the lane still shows, as the server wrote them: the oldest first. */
export function readRecent(): readonly RecentResult[] {
  return JSON.parse(document.body.dataset['recent'] ?? '[]') as RecentResult[]
}

/** Finds the element with `data-slot=name`. Scripts set only the text of the element, and never markup. */
export function slot<E extends HTMLElement = HTMLElement>(name: string): E {
  const found = document.querySelector<E>(`[data-slot="${name}"]`)
  if (!found) throw new Error(`this page has no place for ${name}`)
  return found
}

/** Sets the text of the element with `data-slot=name`. */
export function write(name: string, text: string): void {
  const place = slot(name)
  if (place.textContent !== text) place.textContent = text
}

/** Like `write`, but hides the element if the text is empty. */
export function writeOrHide(name: string, text: string): void {
  write(name, text)
  slot(name).hidden = text === ''
}

/** Makes an element with a text and optional tone. */
export function newElement(
  tag: string,
  text: string,
  options: { tone?: string; className?: string } = {},
): HTMLElement {
  const element = document.createElement(tag)
  element.textContent = text
  if (options.className !== undefined) element.className = options.className
  if (options.tone !== undefined) element.dataset['tone'] = options.tone
  return element
}

/** Shows a technical message in the element `place`, or hides the element if the text is empty. */
export function writeTechnical(place: HTMLElement, text: string): void {
  const code = place.querySelector('code')
  if (code) code.textContent = text
  place.hidden = text === ''
}

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
