import type { Child } from 'hono/jsx'
import { raw } from 'hono/html'
import type { Formats } from '../../platform/texts/catalogue.ts'
import type { Texts } from '../../platform/texts/texts.ts'

/** Language context of a page: texts, formats, and the address of the page in the other language. */
export interface PageContext {
  readonly texts: Texts
  readonly formats: Formats
  readonly other: Pick<Texts, 'language' | 'languageName'>
  readonly otherHref: string
}

/** Styles of the cloud's pages: no external requests, light and dark, printable. */
const STYLE = `
:root { color-scheme: light dark; --ink: #16191d; --paper: #fff; --soft: #5b6470; --line: #d9dee5; --accent: #0a5ad6; --ok: #0b6b3a; --stop: #b3261e; --code: #f4f6f8 }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebef; --paper: #14171a; --soft: #a3adba; --line: #333a43; --accent: #7fb2ff; --ok: #5fd39a; --stop: #ff8a80; --code: #1d2227 } }
* { box-sizing: border-box } body { margin: 0; font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper) }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem; overflow-wrap: anywhere } h1 { font-size: 1.7rem; line-height: 1.2 } h2 { margin-top: 2.5rem; font-size: 1.25rem }
a { color: var(--accent) } .soft { color: var(--soft) } code, pre { font: 14px/1.5 ui-monospace, monospace; background: var(--code); border-radius: 6px }
code { padding: .1em .3em } pre { padding: .8rem 1rem; overflow-x: auto } table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap } .tag { display: inline-block; padding: 0 .5em; border: 1px solid var(--line); border-radius: 999px; font-size: .85rem; color: var(--soft) }
button { font: inherit; min-height: 48px; padding: 0 1.4rem; border-radius: 10px; border: 1px solid var(--line); background: var(--paper); color: var(--ink); cursor: pointer }
button.main { background: var(--accent); border-color: var(--accent); color: var(--paper) } button:focus-visible, a:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
form.row { display: flex; gap: .8rem; flex-wrap: wrap } .ribbon { background: #ffd54a; color: #241c00; text-align: center; font-weight: 600; padding: .3rem } details { border-bottom: 1px solid var(--line); padding: .5rem 0 } summary { cursor: pointer }
form.stack { display: grid; gap: .6rem; max-width: 36rem } label { font-weight: 600 } textarea { font: inherit; padding: .6rem; border-radius: 10px; border: 1px solid var(--soft); background: var(--paper); color: var(--ink); width: 100% }
textarea:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px } ol.talk { list-style: none; padding: 0; max-width: 36rem } ol.talk li { padding: .5rem .9rem; margin: .5rem 0; border: 1px solid var(--line); border-radius: 10px; overflow-wrap: anywhere }
ol.talk li.staff { background: var(--code) } ol.talk p { margin: .2rem 0; white-space: pre-wrap }
.stamp { display: inline-block; margin: 0; padding: .1rem .8rem; border: 3px solid var(--stop); border-radius: 8px; color: var(--stop); font-size: 1.5rem; font-weight: 700; text-transform: uppercase } s { color: var(--soft) }
img { max-width: 100%; height: auto; image-rendering: pixelated } img.code { display: block; width: min(100%, 28rem) }
[hidden] { display: none !important } .lost { position: sticky; top: 0; padding: .8rem 1rem; border: 2px solid var(--stop); border-radius: 10px; background: var(--paper) } .is-lost ol.talk { filter: grayscale(1) }
.balance { margin: .2rem 0; font-size: 2rem; font-weight: 700 } progress { display: block; width: 100%; max-width: 26rem; height: 1rem; accent-color: var(--accent) }
@media (max-width: 30rem) { main { padding: 1rem } table.lines tr { display: flex; flex-wrap: wrap; justify-content: flex-end; border-bottom: 1px solid var(--line) }
img.code { width: 100vw; max-width: none; margin: 0 -1rem } table.lines :is(th, td) { border: 0; padding: .2rem 0 } table.lines .n { flex: 0 0 6rem } table.lines :is(td, th):nth-child(2):not([colspan]):not(:last-child) { flex-basis: 4rem } table.lines :is(tbody td, thead th):first-child { flex: 1 0 100% } table.lines th[colspan] { flex: 1 } }
footer { max-width: 60rem; margin: 0 auto; padding: 0 1.5rem 1.5rem } footer a { display: inline-flex; align-items: center; min-height: 44px }
@media (max-width: 30rem) { footer { padding: 0 1rem 1rem } }
@media print { .ribbon, form, footer { display: none } }`

/** The frame of a page that the cloud renders, with the switch to the other language. */
export function Page({
  title,
  reader: { texts, other, otherHref },
  sandbox = false,
  head,
  children,
}: {
  title: string
  reader: PageContext
  sandbox?: boolean
  /** More elements for the head of the page. */
  head?: Child
  children?: Child
}) {
  return (
    <html lang={texts.language}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex" />
        <title>{title}</title>
        <link rel="icon" href="/icon.svg" type="image/svg+xml" />
        <style>{raw(STYLE)}</style>
        {head}
      </head>
      <body>
        {sandbox ? <div class="ribbon">Sandbox</div> : null}
        <main>{children}</main>
        <footer>
          <a href={otherHref} lang={other.language} hreflang={other.language}>
            {other.languageName}
          </a>
        </footer>
      </body>
    </html>
  )
}
