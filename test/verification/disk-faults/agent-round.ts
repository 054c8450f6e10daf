import { join } from 'node:path'
import { openLedgerFile } from '../../../edge-agent/ledger/file/ledger-file.ts'
import { injectFault } from './inject-fault.ts'
import { outboxEmpty, until, type Answer, type FaultStore } from './fault-store.ts'
import type { FaultPoint, RoundResult } from './fault-point.ts'

const REPORTED_WITHIN_MS = 10_000
/** Denials that a repeated request may get: the right was used, or staff must check the tag. */
const USED: ReadonlySet<unknown> = new Set(['already_redeemed', 'manual_assistance_required'])

/**
 * Runs one release while system calls of the agent fail, then repeats the release without faults. Checks three things:
 * the lock opens at most once, a claim precedes the opening, and the cloud receives every reported event.
 */
export async function agentRound(store: FaultStore, point: FaultPoint, name: string): Promise<RoundResult> {
  const broken: string[] = []
  const { purchaseId, receipt } = await store.buy(name)
  const board = store.boards.pos_deactivator
  const pulses = () => board.writes.filter((w) => w.coil === 0 && w.on).length
  const [pulsesBefore, claimsBefore] = [pulses(), claimsIn(store)]
  const reportedIds = new Set<string>()
  const ask = async (): Promise<Answer | undefined> => {
    const answer = store.agent.isRunning
      ? await store.authorize({
          deviceId: store.devices.pos_deactivator,
          protectionAction: 'deactivate_label',
          receipt,
        })
      : undefined
    if (answer?.status === 200 && typeof answer.body['eventId'] === 'string') reportedIds.add(answer.body['eventId'])
    if (answer?.status === 500) broken.push(`the agent answered 500: ${answer.text}`)
    return answer
  }

  const fault = await injectFault(point, () => store.agent, store.startAgent)
  if (store.agent.isRunning)
    await until(
      'the boards',
      async () => !store.agent.isRunning || (await store.status())?.devices.every((d) => d.state === 'ready'),
    )
  await ask()
  // Waits for the sync with the cloud, because the fault may also hit the system calls of the sync.
  await until(
    'an empty outbox',
    async () => !store.agent.isRunning || (await store.status())?.queueDepth === 0,
    REPORTED_WITHIN_MS,
  ).catch(() => undefined)
  const hit = await fault.disarm()

  const moved = pulses() - pulsesBefore
  if (moved > claimsIn(store) - claimsBefore) broken.push('a lock opened without a claim')
  const endedBySelf = (await bringUp(store)) && point.mode === 'working'
  const again = await ask()
  if (!again) broken.push('the agent does not answer after the fault')
  const total = pulses() - pulsesBefore
  if (total > 1) broken.push(`one right opened the lock ${total} times`)
  if (again?.body['authorized'] !== true && !USED.has(again?.body['reason']))
    broken.push(`the right is neither free nor used: ${again?.text ?? ''}`)
  await outboxEmpty(store).catch((error: unknown) => void broken.push(String(error)))

  const eventsOf = async () =>
    (
      (await store.call('fetchProtectionEvents', { storeId: store.storeId, purchaseId, limit: 500 })) as {
        events: Event[]
      }
    ).events
  // The agent may store an outcome up to a second after the fault.
  await until('an outcome', async () => (await eventsOf()).some(isOutcome), REPORTED_WITHIN_MS).catch(() => undefined)
  const events = await eventsOf()
  const lost = [...reportedIds].filter((id) => !events.some((e) => e.eventId === id))
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

/** Starts the agent again each time it ends because of the fault. Returns true if the agent ended at least once. */
async function bringUp(store: FaultStore): Promise<boolean> {
  let hadEnded = false
  for (;;) {
    if (!store.agent.isRunning) {
      hadEnded = true
      await store.startAgent()
    }
    await until(
      'the agent',
      async () => !store.agent.isRunning || (await store.status())?.devices.every((d) => d.state === 'ready'),
    )
    if (store.agent.isRunning) return hadEnded
  }
}

function claimsIn(store: FaultStore): number {
  const db = openLedgerFile(join(store.disks, 'edge', 'ledger.db'))
  try {
    return db.prepare<[], number>('SELECT COUNT(DISTINCT redemption_id) FROM claim').pluck().get() ?? 0
  } finally {
    db.close()
  }
}
