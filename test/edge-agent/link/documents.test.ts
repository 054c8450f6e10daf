import { expect, it } from 'vitest'
import { DocumentReceiver } from '../../../edge-agent/link/documents/receive-documents.ts'
import type { Trust } from '../../../edge-agent/trust/trust.ts'
import type { Json } from '../../support/cloud.ts'
import { realPlatform } from '../../../host/platform.ts'
import { movablePlatform } from '../../support/movable-platform.ts'

/** Opens a receiver that accepts pages `kind:n` in order, and a simulated cloud with these pages. */
function open(
  pages: Record<'deny' | 'items', number>,
  { hasGate = true, takesBackAt = 2, platform = realPlatform() } = {},
) {
  const held = { deny: 0, items: 0 }
  const told: Json[] = []
  const trust = {
    heldVersions: () => ({ deny: [0, held.deny] as [number, number], items: [1, held.items] as [number, number] }),
    accept(document: string) {
      const [kind, ver] = document.split(':') as ['deny' | 'items', string]
      if (Number(ver) !== held[kind] + 1) return { taken: false, why: 'known' }
      held[kind]++
      return { taken: true, kind }
    },
    revocationReminders: [],
    get lastRevocationSeq() {
      return held.deny >= takesBackAt ? held.deny : 0
    },
  } as unknown as Trust
  const unconfirmed: boolean[] = []
  const refused: string[] = []
  const documents = new DocumentReceiver({
    platform,
    trust,
    pictures: { request: () => [], receive: () => false },
    alarms: { request: () => new Map(), receive: () => undefined },
    session: {
      isOnline: true,
      call(_operation, body) {
        const { have } = body as Json
        told.push(have)
        const of = (kind: 'deny' | 'items') => (have[kind]?.[1] < pages[kind] ? [`${kind}:${have[kind][1] + 1}`] : [])
        return Promise.resolve({
          kind: 'answered',
          status: 200,
          body: { documents: [...of('deny'), ...of('items')] },
        } as never)
      },
    },
    ledger: {
      commits: { durably: (work: () => unknown) => Promise.resolve(work()) },
      journal: { head: { seq: 0, hash: '' } },
      cloudGeneration: { resynced: undefined },
      metadata: { getCached: () => undefined },
    } as never,
    address: undefined,
    deviceReport: () => ({ version: 0, devices: [] }),
    nowMs: () => 0,
    brokerAddress: { version: '', receive: () => undefined },
    hasGate: () => hasGate,
    onForked: () => undefined,
    onCommand: () => undefined,
    onReceived: () => unconfirmed.push(documents.confirmWithinMs !== undefined),
    onRefused: (what) => void refused.push(what),
    log: { info: () => undefined, warn: () => undefined, error: () => undefined },
  })
  return { documents, told, unconfirmed, refused, trust }
}

it.each(['fetch', 'poll'] as const)('must confirm documents that arrived with the last answer (%s)', async (how) => {
  const { documents, told, unconfirmed } = open({ deny: 1, items: 1 })
  const ask = () => (how === 'fetch' ? documents.fetch('all') : documents.poll())
  expect(documents.confirmWithinMs).toBeGreaterThan(0)
  await ask()
  expect(documents.confirmWithinMs).toBeGreaterThan(0)
  await ask()
  expect(documents.confirmWithinMs).toBeUndefined()
  expect(unconfirmed).toEqual([true, false])
  expect(told.map((have) => [have.deny[1], have.items[1]])).toEqual([
    [0, 0],
    [1, 1],
  ])
})

it.each(['fetch', 'poll'] as const)('reports documents that the cloud names but does not send (%s)', async (how) => {
  const { documents, refused, trust } = open({ deny: 0, items: 0 })
  const ask = () => (how === 'fetch' ? documents.fetch('all') : documents.poll())
  await ask()
  expect(refused).toEqual([])
  Object.assign(trust, { missingDenials: 'denials 1 to 2' })
  await ask()
  expect(refused).toEqual(['denials 1 to 2'])
})

it('must confirm documents from the broker, and documents of a poll without items', async () => {
  const { documents } = open({ deny: 0, items: 0 })
  await documents.fetch('without items')
  expect(documents.confirmWithinMs).toBeGreaterThan(0)
  await documents.fetch('all')
  expect(documents.confirmWithinMs).toBeUndefined()
  // No refund waits for a denial that only reports a right used elsewhere.
  documents.receive('deny:1')
  expect(documents.confirmWithinMs).toBeUndefined()
  documents.receive('items:1')
  expect(documents.confirmWithinMs).toBeGreaterThan(0)
})

it('confirms denials at once, because a refund waits for them', async () => {
  const { documents } = open({ deny: 0, items: 0 }, { hasGate: false })
  await documents.fetch('all')
  documents.receive('deny:1')
  documents.receive('deny:2')
  expect(documents.confirmWithinMs).toBeGreaterThan(0)
  await documents.fetch('all')
  expect(documents.confirmWithinMs).toBeUndefined()
})

it('confirms items with the regular poll if no gate uses them', async () => {
  const { documents } = open({ deny: 0, items: 0 }, { hasGate: false })
  await documents.fetch('all')
  documents.receive('items:1')
  expect(documents.confirmWithinMs).toBeUndefined()
})

it('reports an older policy, except if a newer one overtook it within the last minute', () => {
  const { platform, forward } = movablePlatform()
  const { documents, refused, trust } = open({ deny: 0, items: 0 }, { platform })
  const older = { taken: false, why: 'refused', detail: 'policy 0.5 is older than 0.6', isOlderThan: 'policy' }
  trust.accept = (document) => (document === 'policy:5' ? older : { taken: true, kind: 'policy' }) as never
  documents.receive('policy:5')
  expect(refused).toHaveLength(1)
  documents.receive('policy:6')
  documents.receive('policy:5')
  expect(refused).toHaveLength(1)
  forward(61_000)
  documents.receive('policy:5')
  expect(refused).toHaveLength(2)
})
