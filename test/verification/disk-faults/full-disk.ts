import { join } from 'node:path'
import { prepareCloudRound } from './cloud-round.ts'
import { outboxEmpty, until, type FaultStore } from './fault-store.ts'
import { attachFault, type Attached } from './strace.ts'

/** Behaviour of agent and cloud while the disk was full, and after the disk had room again. */
export interface FullDiskResult {
  agent: { refusedWith: string; pulsesWhileFull: number; backAfterMs: number; sameProcess: boolean }
  cloud: {
    refusedWith: string
    readsAnswered: boolean
    backAfterMs: number
    sameProcess: boolean
    answersKept: boolean
  }
  violations: string[]
}

/** Makes each write fail, as on a full disk. */
const NO_ROOM = [{ calls: 'pwrite64', fault: 'error=ENOSPC', when: '1+' }]
const BACK_WITHIN_MS = 20_000

/**
 * Fills the disks of a running agent and a running cloud, then frees them. Both must reject requests with a clear
 * error, keep running, and recover. Needs strace.
 */
export async function fullDisk(store: FaultStore): Promise<FullDiskResult> {
  const violations: string[] = []
  return { agent: await fillAgent(store, violations), cloud: await fillCloud(store, violations), violations }
}

const fill = (store: FaultStore, part: 'agent' | 'cloud'): Promise<Attached> =>
  attachFault(store[part].child.pid ?? 0, join(store.folder, `full-${part}.strace`), NO_ROOM)

async function fillAgent(store: FaultStore, violations: string[]): Promise<FullDiskResult['agent']> {
  const { receipt } = await store.buy('full')
  await outboxEmpty(store)
  const process = store.agent.child.pid
  const pulses = () => store.boards.pos_deactivator.writes.filter((w) => w.coil === 0 && w.on).length
  const before = pulses()
  const ask = () =>
    store.authorize({ deviceId: store.devices.pos_deactivator, protectionAction: 'deactivate_label', receipt })
  const full = await fill(store, 'agent')
  const refused = await ask()
  if (refused?.status !== 503 || refused.body['code'] !== 'ledger_full')
    violations.push(`the agent did not answer ledger_full: ${refused?.status ?? 'no answer'} ${refused?.text ?? ''}`)
  if (!store.agent.isRunning) violations.push(`the agent ended with a full disk: ${store.agent.stderr()}`)
  const pulsesWhileFull = pulses() - before
  if (pulsesWhileFull > 0) violations.push('a lock opened although the claim could not be written')
  await full.detach()
  const from = Date.now()
  // On a slow machine the contact may confirm too late. That attempt counts as failed, and the right stays free.
  let failed = 0
  const isConfirmed = async () => {
    const outcome = (await ask())?.body['outcome']
    if (outcome === 'failed') failed++
    return outcome === 'confirmed'
  }
  await until('the agent', isConfirmed, BACK_WITHIN_MS).catch((error: unknown) => void violations.push(String(error)))
  const backAfterMs = Date.now() - from
  await outboxEmpty(store)
  if (pulses() - before !== 1 + failed)
    violations.push(`one right opened the lock ${pulses() - before} times, and ${failed} of these tries failed`)
  return {
    refusedWith: `${refused?.status} ${String(refused?.body['code'])}`,
    pulsesWhileFull,
    backAfterMs,
    sameProcess: store.agent.child.pid === process,
  }
}

async function fillCloud(store: FaultStore, violations: string[]): Promise<FullDiskResult['cloud']> {
  const { storeId } = await prepareCloudRound(store)
  const process = store.cloud.child.pid
  const kept = await store.ask('checkIn', { storeId, userId: 'before' }, 'full-before')
  const full = await fill(store, 'cloud')
  const refused = await store.ask('checkIn', { storeId, userId: 'full' }, 'full-checkin')
  if (refused?.status !== 503 || refused.body['reason'] !== 'disk_full')
    violations.push(`the cloud did not answer disk_full: ${refused?.status ?? 'no answer'} ${refused?.text ?? ''}`)
  const read = await store.ask('fetchStores', {})
  if (read?.status !== 200)
    violations.push(`the cloud does not read with a full disk: ${read?.status ?? 'no answer'} ${read?.text ?? ''}`)
  if (!store.cloud.isRunning) violations.push(`the cloud ended with a full disk: ${store.cloud.stderr()}`)
  await full.detach()
  const from = Date.now()
  await until(
    'the cloud',
    async () => (await store.ask('checkIn', { storeId, userId: 'full' }, 'full-checkin'))?.status === 200,
    BACK_WITHIN_MS,
  ).catch((error: unknown) => void violations.push(String(error)))
  const backAfterMs = Date.now() - from
  const again = await store.ask('checkIn', { storeId, userId: 'before' }, 'full-before')
  const answersKept = kept !== undefined && again?.text === kept.text
  if (!answersKept) violations.push('the cloud changed a stored answer')
  return {
    refusedWith: `${refused?.status} ${String(refused?.body['reason'])}`,
    readsAnswered: read?.status === 200,
    backAfterMs,
    sameProcess: store.cloud.child.pid === process,
    answersKept,
  }
}
