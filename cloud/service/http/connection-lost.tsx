import { STORE_TIME_ZONE } from '../../../policy/store-time-zone.ts'
import type { Texts } from '../../platform/texts/texts.ts'

/** Address of the script that says when the cloud does not answer (browser/connection.ts). */
export const CONNECTION_SCRIPT = '/assets/connection.js'

/** The script in the head of a page that shows `ConnectionLost`. Such a page needs `LIVE_PAGE_HEADERS`. */
export function ConnectionScript() {
  return <script src={CONNECTION_SCRIPT} defer></script>
}

/** What the page says while the cloud does not answer. `notSent`: what it says about a form. */
export function ConnectionLost({ texts, notSent }: { texts: Texts; notSent?: string }) {
  const t = texts.zone
  return (
    <div id="connection" class="lost" role="alert" hidden data-zone={STORE_TIME_ZONE} data-old={t.old}>
      <strong>{t.lost}</strong> <span data-text></span>{' '}
      <span data-sent="entry" hidden>
        {notSent ?? t.notConfirmed}
      </span>
      <span data-sent="press" hidden>
        {notSent ?? t.pressNotConfirmed}
      </span>
    </div>
  )
}
