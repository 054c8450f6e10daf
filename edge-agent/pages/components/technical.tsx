import type { Texts } from '../texts/texts.ts'

/**
 * A message of a driver, the operating system or the configuration check. The message is in English, for technicians.
 * `data`: attributes for the page's script.
 */
export function Technical({ texts, text, data }: { texts: Texts; text: string; data?: Record<string, string | true> }) {
  return (
    <p class="soft" hidden={text === ''} {...data}>
      {texts.technical}: <code lang="en">{text}</code>
    </p>
  )
}
