import { pause } from '../../../policy/platform.ts'
import type { Timers } from '../../../policy/platform.ts'
import { SHARING_VIOLATION } from '../../protocols/pcsc/return-codes.ts'
import { PcscRefusal } from './pcscd.ts'
import type { Pcscd } from './pcscd.ts'

/** One card while nobody else may speak with it. */
export interface Card {
  /** Sends a command and gives the answer, status and all. Rejects with `PcscRefusal` when the reader could not. */
  transmit(apdu: Uint8Array): Promise<Uint8Array>
  /** The card is to be reset when it is let go of: after a refused address it may listen to nothing else. */
  resetOnRelease(): void
}

const SHARED = 2
/** T=0 or T=1: readers offer storage cards as T=1. */
const ANY_PROTOCOL = 3
const LEAVE = 0
const RESET = 1
const PCI_BYTES = 16
const MAX_ANSWER_BYTES = 258

/** How often another program's turn is waited for. */
const TURNS = 20
const TURN_MS = 100

/** Asks until no other program is using the card, for 2 s at most. */
async function retryWhileShared<T>(timers: Timers, over: AbortSignal, ask: () => Promise<T>): Promise<T> {
  for (let turn = 1; ; turn++) {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof PcscRefusal) || error.rv !== SHARING_VIOLATION || turn >= TURNS) throw error
      await pause(timers, TURN_MS, over)
    }
  }
}

/** A refusal here leaves nothing to be done: the card or its reader is gone, which the table of readers shows next. */
async function ignoreRefusal(ask: Promise<unknown>): Promise<void> {
  try {
    await ask
  } catch (error) {
    if (!(error instanceof PcscRefusal)) throw error
  }
}

/**
 * Lets `work` speak with the card on a reader, alone. Rejects with `PcscRefusal` when there is none, when it
 * does not answer or when another program keeps it, and with another error when the conversation is over.
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
