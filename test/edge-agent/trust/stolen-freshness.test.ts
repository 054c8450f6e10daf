import { afterEach, describe, expect, it } from 'vitest'
import type { MqttLineOptions } from '../../../edge-agent/link/wire/broker-line.ts'
import type { AgentParts } from '../../../edge-agent/runtime.ts'
import type { AckClaims, CommandClaims } from '../../../policy/documents/agent-messages.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import { agentTopic } from '../../../policy/mqtt-topics.ts'
import type { Json } from '../../support/cloud.ts'
import { memoryBroker } from '../../support/memory-broker.ts'
import { LANES, openStore, type TestStore } from '../../support/store.ts'

/**
 * A thief controls the broker and has the freshness key, which signs acknowledgements and commands. Its revocation
 * voids them.
 */

let store: TestStore
let line: MqttLineOptions | undefined
/** True while the thief drops each batch. */
let isHeld = false
afterEach(() => store.stop())

const authority = () => store.shop.cloud.cloud.services.authority
const ok = (operation: string, body: Json) => store.drive(store.shop.ok(operation, body))
const journal = () => store.agent.ledger.journal
const cloudHas = async () => (await ok('fetchAgents', { storeId: store.shop.storeId })).agents[0].ledgerSeq as number
const raised = async (kind: string): Promise<Json[]> =>
  (await ok('fetchExceptions', { storeId: store.shop.storeId, kind })).exceptions
const atStation = (receipt: string) =>
  store.authorize({ deviceId: store.shop.devices[LANES.station], protectionAction: 'deactivate_label', receipt })
const revokeKey = () =>
  store.drive(
    store.shop.cloud.db.database.write((db) =>
      authority().rotate(db, { iss: 'installation', use: 'freshness', revoke: true }),
    ),
  )
const allTold = () =>
  store.until('everything is told', async () => journal().waiting === 0 && (await cloudHas()) === journal().head.seq)

async function open(): Promise<void> {
  isHeld = false
  const parts: Partial<AgentParts> = {}
  store = await openStore({
    parts,
    extra: async (shop) => {
      parts.openLine = async (options, timeoutMs) => {
        line = options
        const real = await memoryBroker(shop.cloud.cloud, { storeId: shop.storeId, agentId: options.clientId })(
          options,
          timeoutMs,
        )
        return {
          ...real,
          publish: (topic, payload, kept) =>
            void (!(isHeld && topic.endsWith('/events')) && real.publish(topic, payload, kept)),
        }
      }
      return {}
    },
  })
  await allTold()
}

function say(topic: 'ack' | 'command', document: string): void {
  const { agentId, storeId } = store.identity
  line?.onMessage(agentTopic(storeId, agentId, topic), document)
}

const times = () => ({
  aud: store.identity.agentId,
  iat: Math.floor(store.world.clock.wall() / 1_000),
  exp: Math.floor(store.world.clock.wall() / 1_000) + 60,
})

function acknowledge(): void {
  const { seq, hash: head } = journal().head
  const claims: AckClaims = { ...times(), ledger: store.identity.ledgerId, generation: 1, seq, head }
  say('ack', signDocument(DOCUMENT_KINDS.ack, claims, authority().freshnessSigner))
}

/** The agent denies a request at the station. The thief drops the batch and forges its acknowledgement. */
async function swallowed(): Promise<string> {
  isHeld = true
  const { eventId } = await atStation('nonsense')
  acknowledge()
  expect(journal().waiting).toBe(0)
  await store.world.advance(20_000)
  expect(await cloudHas()).toBeLessThan(journal().head.seq)
  isHeld = false
  return eventId
}

async function isTold(eventId: string): Promise<void> {
  const { events } = await ok('fetchProtectionEvents', {
    storeId: store.shop.storeId,
    type: 'protection.authorization.denied',
    limit: 500,
  })
  expect(events.map((e: Json) => e.eventId)).toContain(eventId)
}

describe('after the theft of a freshness key', () => {
  it('sends falsely acknowledged rows again once the key is revoked', async () => {
    await open()
    const eventId = await swallowed()
    await revokeKey()
    await allTold()
    await isTold(eventId)
    // After a restart the agent sends no row again, and the cloud misses none.
    await store.restart()
    await allTold()
    expect(await raised('ledger_gap')).toEqual([])
  })

  it('sends falsely acknowledged rows again when the cloud rejects the next row, and raises an exception', async () => {
    await open()
    const first = await swallowed()
    const { eventId } = await atStation('nonsense too')
    await allTold()
    await isTold(first)
    await isTold(eventId)
    expect((await raised('refused_document')).map(({ detail }) => detail as string)).toContainEqual(
      expect.stringMatching(/forged acknowledgement/),
    )
  })

  it('raises an exception about rows pruned after a false acknowledgement, and delivers later rows', async () => {
    await open()
    await swallowed()
    await atStation('nonsense too')
    acknowledge()
    const forgotten = journal().head.seq
    await atStation('and again')
    acknowledge()
    const { ledger } = store.agent
    ledger.commits.now(() => ledger.journal.prune(store.world.clock.wall() + 1))
    isHeld = true
    const { eventId } = await atStation('at last')
    isHeld = false
    await allTold()
    await isTold(eventId)
    expect((await raised('ledger_gap')).map(({ detail }) => detail as string)).toEqual([
      expect.stringMatching(new RegExp(`to ${forgotten + 1} were acknowledged, but not by this cloud`)),
    ])
  })

  const revokeAgent = () => {
    const claims: CommandClaims = { ...times(), jti: 'x', command: 'revoke' }
    say('command', signDocument(DOCUMENT_KINDS.command, claims, authority().freshnessSigner))
  }
  const isRevoked = () => store.agent.status().ledgerDoubt === 'revoked'

  it('ends a forged revocation of the agent once the key is revoked', async () => {
    await open()
    revokeAgent()
    revokeAgent()
    expect(isRevoked()).toBe(true)
    await store.restart()
    expect(isRevoked()).toBe(true)
    await revokeKey()
    await store.until('in use again', () => !isRevoked())
    const { receipt } = await store.buy([{ ean: store.shop.products[0].ean, quantity: 1 }])
    expect(await atStation(receipt)).toMatchObject({ authorized: true })
    await store.restart()
    expect(isRevoked()).toBe(false)
  })

  it('keeps an agent revoked if the cloud revoked it too', async () => {
    await open()
    revokeAgent()
    await ok('revokeAgent', { agentId: store.identity.agentId })
    await revokeKey()
    await store.world.advance(60_000)
    expect(isRevoked()).toBe(true)
    await store.restart()
    await store.world.advance(60_000)
    expect(isRevoked()).toBe(true)
  })
})
