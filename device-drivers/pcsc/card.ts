import { pause } from '../../policy/platform.ts'
import type { Timers } from '../../policy/platform.ts'
import { SHARING_VIOLATION } from './protocol/messages.ts'
import { PcscRefusal } from './pcscd.ts'
import type { Pcscd } from './pcscd.ts'

/** One card, locked for this program. */
export interface Card {
  /** Sends a command and returns the answer with its status. Rejects with `PcscRefusal` if the reader failed. */
  transmit(apdu: Uint8Array): Promise<Uint8Array>
  /** Resets the card when `withCard` ends. Some cards stop answering after they have refused an address. */
  resetOnRelease(): void
}

const SHARED = 2
/** T=0 or T=1; readers offer storage cards as T=1. */
const ANY_PROTOCOL = 3
const LEAVE = 0
const RESET = 1
const PCI_BYTES = 16
const MAX_ANSWER_BYTES = 258

/** Maximum attempts while another program uses the card, and the interval between them, ms. */
const MAX_ATTEMPTS = 20
const ATTEMPT_INTERVAL_MS = 100

/** Retries while another program uses the card, for 2 s at most. */
async function retryWhileShared<T>(timers: Timers, over: AbortSignal, request: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await request()
    } catch (error) {
      if (!(error instanceof PcscRefusal) || error.rv !== SHARING_VIOLATION || attempt >= MAX_ATTEMPTS) throw error
      await pause(timers, ATTEMPT_INTERVAL_MS, over)
    }
  }
}

/** Ignores a refusal, because the card or its reader is gone. The next reader table also shows this. */
async function ignoreRefusal(request: Promise<unknown>): Promise<void> {
  try {
    await request
  } catch (error) {
    if (!(error instanceof PcscRefusal)) throw error
  }
}

/**
 * Runs `work` with the card on a reader, locked for this program. Rejects with `PcscRefusal` if there is no card, if
 * the card does not answer, or if another program uses the card. Rejects with another error if the connection is over.
 */
export async function withCard<T>(
  pcscd: Pcscd,
  reader: string,
  timers: Timers,
  over: AbortSignal,
  work: (card: Card) => Promise<T>,
): Promise<T> {
  const request = { context: pcscd.context, reader, shareMode: SHARED, protocols: ANY_PROTOCOL }
  const { body } = await retryWhileShared(timers, over, () => pcscd.request('connect', request))
  const { card = 0, protocol = 0 } = body
  let disposition = LEAVE
  try {
    await retryWhileShared(timers, over, () => pcscd.request('beginTransaction', { card }))
    try {
      return await work({
        async transmit(apdu) {
          const pci = {
            sendProtocol: protocol,
            sendPciLength: PCI_BYTES,
            receiveProtocol: protocol,
            receivePciLength: PCI_BYTES,
          }
          return (
            await pcscd.request(
              'transmit',
              { card, ...pci, sendLength: apdu.length, receiveLength: MAX_ANSWER_BYTES },
              apdu,
            )
          ).data
        },
        resetOnRelease: () => void (disposition = RESET),
      })
    } finally {
      await ignoreRefusal(pcscd.request('endTransaction', { card, disposition: LEAVE }))
    }
  } finally {
    await ignoreRefusal(pcscd.request('disconnect', { card, disposition }))
  }
}
