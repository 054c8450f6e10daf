import { pause } from '../../policy/platform.ts'
import type { Platform } from '../../policy/platform.ts'
import { decodeCard, OSDP_COMMAND, OSDP_REPLY, osdpCommand, outputOff } from './protocol/messages.ts'
import type { OsdpCard } from './protocol/messages.ts'
import type { Dialogue, OsdpAnswer } from './dialogue.ts'

export interface WatchDeviceOptions {
  readonly dialogue: Dialogue
  readonly platform: Platform
  /** Pause between two polls, ms. */
  readonly pollMs: number
  /** Ends the polling. */
  readonly over: AbortSignal
  /** The releasing output. `isOn` returns true while a pulse or an emergency may have switched the output on. */
  readonly release: { readonly output: number; isOn(): boolean } | null
  /** Called for each card; two reads of a card cause two calls. */
  onCard(card: OsdpCard): void
  onFault(detail: string): void
}

/**
 * Interval of the requests for tamper, power and output status, ms. Some devices also report tamper and power by
 * themselves.
 */
const CHECK_EVERY_MS = 2_000

const STATES = ['its housing is open or its sensor says so (tamper)', 'its power fails'] as const

/** Polls a device until `over` aborts. The device reports cards and tampering only in the answers. */
export async function watchDevice(o: WatchDeviceOptions): Promise<void> {
  const { clock, timers } = o.platform
  const reported = [0, 0]
  const refused = new Set<number>()
  let lastCheckMs = -CHECK_EVERY_MS

  function onAnswer(answer: OsdpAnswer): void {
    if (answer.kind !== 'reply') return
    if (answer.code === OSDP_REPLY.card) {
      const card = decodeCard(answer.data)
      if (card) o.onCard(card)
      else o.onFault('the device reports a malformed card')
    }
    if (answer.code !== OSDP_REPLY.localStatus) return
    STATES.forEach((text, i) => {
      const now = answer.data[i] ?? 0
      if (now !== reported[i] && now !== 0) o.onFault(text)
      reported[i] = now
    })
  }

  async function requestIfSupported(code: number): Promise<OsdpAnswer | null> {
    if (refused.has(code)) return null
    const answer = await o.dialogue.send(osdpCommand(code), { lane: 'poll' })
    // If a device lacks this command, the agent does not send the command again.
    if (answer.kind === 'nak') refused.add(code)
    return answer
  }

  async function checkOutput(): Promise<void> {
    const { release } = o
    if (!release || release.isOn()) return
    const answer = await requestIfSupported(OSDP_COMMAND.outputStatus)
    if (
      answer?.kind !== 'reply' ||
      answer.code !== OSDP_REPLY.outputStatus ||
      !answer.data[release.output] ||
      release.isOn()
    )
      return
    o.onFault(`output ${release.output} was on and is switched off again`)
    await o.dialogue.send(outputOff(release.output))
  }

  while (!o.over.aborted) {
    onAnswer(await o.dialogue.send(osdpCommand(OSDP_COMMAND.poll), { lane: 'poll' }))
    if (clock.elapsed() - lastCheckMs >= CHECK_EVERY_MS) {
      lastCheckMs = clock.elapsed()
      const status = await requestIfSupported(OSDP_COMMAND.localStatus)
      if (status) onAnswer(status)
      await checkOutput()
    }
    if (!o.over.aborted) await pause(timers, o.pollMs, o.over).catch(() => {})
  }
}
