import { raw } from 'hono/html'
import type { Child } from 'hono/jsx'
import { manifestUrl } from '../manifest.ts'
import { STYLE } from '../style/style.ts'
import type { RecentResult } from '../model/wire.ts'
import type { Texts } from '../texts/texts.ts'

/** Buttons for the screen itself: sound, if the configuration allows sounds, and full screen. */
export function ScreenButtons({ texts, hasSounds }: { texts: Texts; hasSounds: boolean }) {
  return (
    <div class="screen">
      {hasSounds ? (
        <button type="button" data-slot="mute" aria-pressed="false">
          {texts.soundOn}
        </button>
      ) : null}
      <button type="button" data-slot="full-screen" hidden>
        {texts.fullScreen}
      </button>
    </div>
  )
}

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

/** The texts in the chosen language, and a link to the page in the other language. */
export interface Localization {
  texts: Texts
  /** The language of the page before a shopper chose another one. */
  own: Texts['language']
  other: Pick<Texts, 'language' | 'languageName'> & { href: string }
}

export interface FrameProps {
  title: string
  localization: Localization
  /** Page kind, for the style sheet. */
  kind: 'station' | 'gate' | 'list'
  deviceId?: string
  /** Results that the page still shows after a reload, the oldest first. */
  recent?: readonly RecentResult[] | undefined
  /** The page's script, and the nonce that permits it. Absent for pages without a script. */
  script?: { src: string; nonce: string } | undefined
  children?: Child
}

/** Link to the same page in the other language. */
export function LanguageSwitch({ other }: Pick<Localization, 'other'>) {
  return (
    <a class="language" href={other.href} lang={other.language} hreflang={other.language}>
      {other.languageName}
    </a>
  )
}

/** The frame of every page: one style sheet, at most one script, no requests to other hosts. */
export function Frame({ title, localization, kind, deviceId, recent = [], script, children }: FrameProps) {
  const { texts, other, own } = localization
  return (
    <html lang={texts.language}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex" />
        <title>{title}</title>
        <link rel="icon" href="/icon.svg" type="image/svg+xml" />
        {deviceId !== undefined && kind !== 'list' ? <link rel="manifest" href={manifestUrl(kind, deviceId)} /> : null}
        <style>{raw(STYLE)}</style>
        {script ? <script type="module" src={script.src} nonce={script.nonce} /> : null}
      </head>
      <body
        class={kind}
        data-device={deviceId}
        data-own-language={own}
        data-recent={recent.length > 0 ? JSON.stringify(recent) : undefined}
      >
        {children}
        {kind === 'list' ? (
          <footer>
            <LanguageSwitch other={other} />
          </footer>
        ) : null}
        {script ? (
          <noscript>
            <p class="banner" data-tone="bad">
              {texts.needsScript}
            </p>
          </noscript>
        ) : null}
      </body>
    </html>
  )
}
