import type { Platform } from '../../../policy/platform.ts'
import { LedgerFull } from '../../ledger/file/commit.ts'
import type { Log } from '../../log.ts'
import type { Trust } from '../../trust/trust.ts'
import type { HttpClient } from '../wire/http-client.ts'
import { CALL_MS } from './cloud-session.ts'

/** Asks the cloud for signed time that cannot be an old copy, as it answers our own nonce. */
export interface TimeRequests {
  readonly isDue: boolean
  /** Requests the time once. After a failure the next poll repeats it. */
  request(): Promise<void>
}

export interface TimeRequestsParts {
  platform: Pick<Platform, 'clock' | 'random'>
  http: Pick<HttpClient, 'get'>
  trust: Pick<Trust, 'acceptTime'>
  log: Log
  onRefused(what: string): void
}

/** Interval of time requests while online. Only a signed answer can lower a clock that is ahead. */
const REQUEST_EVERY_MS = 10 * 60_000
/** Delay before the request is repeated, if the answer was doubtful or could not be stored, ms. */
const REPEAT_AFTER_MS = 60_000

/** Due at once. */
export function timeRequests({
  platform: { clock, random },
  http,
  trust,
  log,
  onRefused,
}: TimeRequestsParts): TimeRequests {
  let dueAtMs = 0
  const dueIn = (ms: number) => void (dueAtMs = clock.elapsed() + ms)

  function take(time: string, nonce: string): void {
    const taken = trust.acceptTime(time, nonce)
    if (taken.taken) return dueIn(REQUEST_EVERY_MS)
    if (taken.why === 'known') return
    if (taken.needsConfirmation) dueIn(REPEAT_AFTER_MS)
    onRefused(`time: ${taken.detail}`)
  }

  return {
    get isDue() {
      return clock.elapsed() >= dueAtMs
    },
    async request() {
      const nonce = Buffer.from(random.bytes(16)).toString('base64url')
      const answer = await http.get(`time?nonce=${nonce}`, CALL_MS)
      const time = answer.kind === 'answered' ? answer.body['time'] : undefined
      if (typeof time !== 'string') return
      try {
        take(time, nonce)
      } catch (error) {
        if (!(error instanceof LedgerFull)) throw error
        // The clock continues from the stored time.
        log.warn({}, 'the disk is full: the time was not stored')
        dueIn(REPEAT_AFTER_MS)
      }
    },
  }
}
