import type { Texts } from '../texts/texts.ts'

/**
 * A message of a driver, of the operating system or of the configuration check. It is in English for whoever sets a machine up,
 * and marked so. `data`: how the page's program finds it.
 */
export function Technical({ texts, text, data }: { texts: Texts; text: string; data?: Record<string, string | true> }) {
  return (
    <p class="soft" hidden={text === ''} {...data}>
      {texts.technical}: <code lang="en">{text}</code>
    </p>
  )
}
