import { isLanguage, textsOf } from '../texts/catalogue.ts'
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
