import { join } from 'node:path'
import { openLedgerFile } from '../../edge-agent/ledger/file/ledger-file.ts'
import { injectFault } from './armed.ts'
import { outboxEmpty, until, type Answer, type FaultStore } from './rig.ts'
import type { FaultPoint, RoundResult } from './aim.ts'

const REPORTED_WITHIN_MS = 10_000
/** Denials that a repeated request may get: the right was used, or staff must check the tag. */
const USED: ReadonlySet<unknown> = new Set(['already_redeemed', 'manual_assistance_required'])

/**
 * Runs one release while system calls of the agent fail, then repeats the release without faults. Checks that the lock
 * opens at most once, that a claim precedes it, and that the cloud receives every reported event.
 */
export async function agentRound(rig: FaultStore, aim: FaultPoint, name: string): Promise<RoundResult> {
  const broken: string[] = []
  const { purchaseId, receipt } = await rig.buy(name)
  const board = rig.boards.pos_deactivator
  const pulses = () => board.writes.filter((w) => w.coil === 0 && w.on).length
  const [pulsesBefore, claimsBefore] = [pulses(), claimsIn(rig)]
  const told = new Set<string>()
  const ask = async (): Promise<Answer | undefined> => {
    const answer = rig.agent.isRunning
      ? await rig.authorize({ deviceId: rig.devices.pos_deactivator, protectionAction: 'deactivate_label', receipt })
      : undefined
    if (answer?.status === 200 && typeof answer.body['eventId'] === 'string') told.add(answer.body['eventId'])
    if (answer?.status === 500) broken.push(`the agent answered 500: ${answer.text}`)
    return answer
  }

  const armed = await injectFault(aim, () => rig.agent, rig.startAgent)
  if (rig.agent.isRunning)
    await until(
      'the boards',
      async () => !rig.agent.isRunning || (await rig.status())?.devices.every((d) => d.state === 'ready'),
    )
  await ask()
  // System calls of the sync with the cloud may fail as well.
  await until(
    'an empty outbox',
    async () => !rig.agent.isRunning || (await rig.status())?.queueDepth === 0,
    REPORTED_WITHIN_MS,
  ).catch(() => undefined)
  const hit = await armed.disarm()

  const moved = pulses() - pulsesBefore
  if (moved > claimsIn(rig) - claimsBefore) broken.push('a lock opened without a claim')
  const endedBySelf = (await bringUp(rig)) && aim.mode === 'working'
  const again = await ask()
  if (!again) broken.push('the agent does not answer after the fault')
  const total = pulses() - pulsesBefore
  if (total > 1) broken.push(`one right opened the lock ${total} times`)
  if (again?.body['authorized'] !== true && !USED.has(again?.body['reason']))
    broken.push(`the right is neither free nor used: ${again?.text ?? ''}`)
  await outboxEmpty(rig).catch((error: unknown) => void broken.push(String(error)))

  const eventsOf = async () =>
    ((await rig.call('fetchProtectionEvents', { storeId: rig.storeId, purchaseId, limit: 500 })) as { events: Event[] })
      .events
  // The agent stores an outcome up to a second after the fault.
  await until('an outcome', async () => (await eventsOf()).some(isOutcome), REPORTED_WITHIN_MS).catch(() => undefined)
  const events = await eventsOf()
  const lost = [...told].filter((id) => !events.some((e) => e.eventId === id))
  if (lost.length > 0) broken.push(`the cloud lacks events that the agent reported in its answers: ${lost.join(', ')}`)
  const outcomes = events.filter(isOutcome)
  if (outcomes.length !== 1) broken.push(`one right has ${outcomes.length} outcomes`)
  if (total === 0 && outcomes[0]?.outcome === 'confirmed') broken.push('an outcome is confirmed, but no lock opened')
  return { hit, ended: endedBySelf, broken }
}

interface Event {
  eventId: string
  type: string
  outcome?: string
}

const isOutcome = ({ type }: Event) => type === 'protection.action.completed' || type === 'protection.action.failed'

/** Starts the agent again each time it ends because of the fault. Returns true if the agent had ended. */
async function bringUp(rig: FaultStore): Promise<boolean> {
  let hadEnded = false
  for (;;) {
    if (!rig.agent.isRunning) {
      hadEnded = true
      await rig.startAgent()
    }
    await until(
      'the agent',
      async () => !rig.agent.isRunning || (await rig.status())?.devices.every((d) => d.state === 'ready'),
    )
    if (rig.agent.isRunning) return hadEnded
  }
}

function claimsIn(rig: FaultStore): number {
  const db = openLedgerFile(join(rig.disks, 'edge', 'ledger.db'))
  try {
    return db.prepare<[], number>('SELECT COUNT(DISTINCT redemption_id) FROM claim').pluck().get() ?? 0
  } finally {
    db.close()
  }
}
