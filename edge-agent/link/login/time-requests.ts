import type { Platform } from '../../../policy/platform.ts'
import { LedgerFull } from '../../ledger/file/commit.ts'
import type { Log } from '../../log.ts'
import type { Trust } from '../../trust/trust.ts'
import type { HttpClient } from '../wire/http-client.ts'
import { CALL_MS } from './cloud-session.ts'

/**
 * Requests signed time from the cloud. The answer contains the nonce of the request, so an old answer cannot pass as
 * new.
 */
export interface TimeRequests {
  readonly isDue: boolean
  /** Requests the time once. If the request fails, the agent repeats it with the next poll. */
  request(): Promise<void>
}

interface TimeRequestsParts {
  platform: Pick<Platform, 'clock' | 'random'>
  http: Pick<HttpClient, 'get'>
  trust: Pick<Trust, 'acceptTime'>
  log: Log
  onRefused(what: string): void
}

/**
 * Interval of time requests while online, ms. Only the answer to a time request can set back a trusted clock that is
 * ahead.
 */
const REQUEST_EVERY_MS = 10 * 60_000
/** Delay before the request is repeated, if the answer needs confirmation or could not be stored, ms. */
const REPEAT_AFTER_MS = 60_000

/** Creates the requests. The first request is due at once. */
export function timeRequests({
  platform: { clock, random },
  http,
  trust,
  log,
  onRefused,
}: TimeRequestsParts): TimeRequests {
  let dueAtMs = 0
  const dueIn = (ms: number) => void (dueAtMs = clock.elapsed() + ms)

  function applyTime(time: string, nonce: string): void {
    const result = trust.acceptTime(time, nonce)
    if (result.taken) return dueIn(REQUEST_EVERY_MS)
    if (result.why === 'known') return
    if (result.needsConfirmation) dueIn(REPEAT_AFTER_MS)
    onRefused(`time: ${result.detail}`)
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
        applyTime(time, nonce)
      } catch (error) {
        if (!(error instanceof LedgerFull)) throw error
        // The agent continues with the last stored time.
        log.warn({}, 'the disk is full: the time was not stored')
        dueIn(REPEAT_AFTER_MS)
      }
    },
  }
}
