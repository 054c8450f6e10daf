import { after, request } from './platform.ts'

/** After this time without a result and without a touch, the page speaks its own language again, ms. */
const OWN_AFTER_MS = 60_000
const ANSWER_MS = 5_000

/**
 * The link of the language is for one shopper: after a minute at rest, the page returns to its own language. Neither way
 * loads a page that the agent does not answer, because the browser would show its error page instead. `isAtRest`: the
 * page shows no result.
 */
export function returnToOwnLanguage(isAtRest: () => boolean): void {
  const { ownLanguage } = document.body.dataset
  const isOther = ownLanguage !== undefined && ownLanguage !== document.documentElement.lang

  for (const link of document.querySelectorAll<HTMLAnchorElement>('a.language'))
    link.addEventListener('click', (event) => {
      event.preventDefault()
      void open(link.href)
    })
  if (!isOther) return
  let cancel = () => {}
  function restart(): void {
    cancel()
    cancel = after(OWN_AFTER_MS, () => (isAtRest() && !document.querySelector('dialog[open]') ? leave() : restart()))
  }
  function leave(): void {
    const own = new URL(location.href)
    own.searchParams.delete('lang')
    void open(own.href).then(restart)
  }
  for (const type of ['pointerdown', 'keydown']) document.addEventListener(type, restart, { capture: true })
  restart()
}

/** Replaces the page: the way back must not lead through the languages of earlier shoppers. */
async function open(url: string): Promise<void> {
  const answer = await request(url, { method: 'HEAD' }, ANSWER_MS).catch(() => undefined)
  if (answer?.ok === true) location.replace(url)
}
