import { isLanguage, textsOf } from '../texts/catalogue.ts'
import type { Texts } from '../texts/texts.ts'

/** Where this page stands and in which language, as the server wrote it. */
export interface PageContext {
  deviceId: string
  texts: Texts
}

/** What the server wrote into the page about its place. */
export function readPageContext(): PageContext {
  const { lang } = document.documentElement
  return { deviceId: document.body.dataset['device'] ?? '', texts: textsOf(isLanguage(lang) ? lang : 'en') }
}
