import { afterEach, describe, expect, it } from 'vitest'
import { secretFiles } from '../../../host/secret-files.ts'
import { ROTATION_REQUESTED } from '../../../edge-agent/link/login/renew-key.ts'
import { messageSigner } from '../../../edge-agent/link/login/sign-messages.ts'
import { readIdentity, writeIdentity, type Identity } from '../../../edge-agent/identity/identity.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { newKey, publicJwk, createSigner } from '../../../policy/documents/keys.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import { openStore, type TestStore } from '../../support/store.ts'

const DAY = 86_400_000

describe('the key of an agent', () => {
  let store: TestStore
  afterEach(() => store.stop())

  const storedIdentity = (): Identity => readIdentity(store.dataDir, secretFiles) as Identity
  const row = () =>
    store.shop.cloud.db.database.reads
      .selectFrom('agent')
      .select(['x', 'next_x'])
      .where('agent_id', '=', store.identity.agentId)
      .executeTakeFirstOrThrow()
  const changedTo = (x: string) =>
    store.until('the new key at work', async () => {
      const { next, x: own } = storedIdentity()
      const known = await row()
      return own === x && !next && known.x === x && known.next_x === null
    })
  /** Makes this the only key that the cloud accepts from this agent. */
  const honour = (x: string) =>
    store.shop.cloud.db.database.write((db) =>
      db.updateTable('agent').set({ x, next_x: null }).where('agent_id', '=', store.identity.agentId).execute(),
    )
  const login = async (identity: Identity) => {
    const { agentId } = identity
    const { challenge } = (await store.shop.cloud.call(null, 'agentLogin', { agentId })).body
    return store.shop.cloud.call(null, 'agentLogin', {
      agentId,
      assertion: messageSigner(identity).assertion(challenge, store.world.clock.wall()),
    })
  }
  const fresh = () => {
    const { x, secret } = newKey(store.world.random)
    return { x, secret: secret.toString('base64url') }
  }
  const rotate = ({ x, secret }: { x: string; secret: string }, formerKid: string) => {
    const iat = Math.floor(store.world.clock.wall() / 1_000)
    const proof = signDocument(
      DOCUMENT_KINDS.rotation,
      { aud: store.identity.agentId, iat, exp: iat + 300, formerKid },
      createSigner(x, Buffer.from(secret, 'base64url')),
    )
    return store.drive(store.agent.link.call('rotateAgentKey', { publicJwk: publicJwk(x), proof }))
  }
  const formerKid = () => createSigner(store.identity.x, Buffer.from(store.identity.secret, 'base64url')).kid

  it('changes on request and after 30 days; the cloud rejects the former key once the new one was used, and the journal continues', async () => {
    store = await openStore()
    const first = storedIdentity()
    store.agent.ledger.metadata.set(ROTATION_REQUESTED, '1')
    await store.until('another key', () => storedIdentity().x !== first.x)
    const second = storedIdentity()
    await changedTo(second.x)
    expect((await login(first)).status).toBe(401)
    const { receipt } = await store.buy([{ ean: store.shop.products[0].ean, quantity: 1 }])
    expect(
      await store.authorize({
        deviceId: store.shop.devices.pos_deactivator,
        protectionAction: 'deactivate_label',
        receipt,
      }),
    ).toMatchObject({ authorized: true })
    await store.until('an empty outbox', () => store.agent.ledger.journal.waiting === 0)
    store.world.sleep(31 * DAY)
    await store.until('a third key', () => storedIdentity().x !== second.x, 120_000)
    await changedTo(storedIdentity().x)
  })

  it.each<[string, (next: { x: string; secret: string }) => Promise<void> | void]>([
    [
      'it stored a new key and did not offer it to the cloud',
      (next) => writeIdentity(store.dataDir, { ...store.identity, next }, secretFiles),
    ],
    [
      'the cloud accepted the key and the answer was lost',
      async (next) => {
        await store.shop.cloud.db.database.write((db) =>
          db.updateTable('agent').set({ next_x: next.x }).where('agent_id', '=', store.identity.agentId).execute(),
        )
        writeIdentity(store.dataDir, { ...store.identity, next }, secretFiles)
      },
    ],
    [
      'it adopted the key without using it',
      async (next) => {
        await store.shop.cloud.db.database.write((db) =>
          db.updateTable('agent').set({ next_x: next.x }).where('agent_id', '=', store.identity.agentId).execute(),
        )
        const { x, secret } = store.identity
        writeIdentity(store.dataDir, { ...store.identity, ...next, former: [{ x, secret }] }, secretFiles)
      },
    ],
    [
      'the cloud lost the key in a restore',
      (next) => {
        const { x, secret } = store.identity
        writeIdentity(store.dataDir, { ...store.identity, ...next, former: [{ x, secret }] }, secretFiles)
      },
    ],
  ])('recovers if the agent crashed after %s', async (_name, leave) => {
    store = await openStore()
    const next = fresh()
    await store.restart(() => leave(next))
    await changedTo(next.x)
    await store.until('online', () => store.agent.link.isOnline)
  })

  it('is offered again to a cloud restored from an older backup, at any later time', async () => {
    store = await openStore()
    const first = storedIdentity()
    let last = first
    for (let n = 0; n < 3; n++) {
      const before = last.x
      store.agent.ledger.metadata.set(ROTATION_REQUESTED, '1')
      await store.until('another key', () => storedIdentity().x !== before)
      last = storedIdentity()
      await changedTo(last.x)
    }
    store.world.sleep(5 * DAY)
    await honour(first.x)
    await store.restart()
    await changedTo(last.x)
    expect(storedIdentity().former).toEqual([{ x: first.x, secret: first.secret }])
    await store.until('online', () => store.agent.link.isOnline)
  })

  it('stays if the cloud temporarily rejects it and the former key', async () => {
    store = await openStore()
    const former = storedIdentity()
    const present = { ...fresh(), former: [{ x: former.x, secret: former.secret }] }
    await honour(fresh().x)
    await store.restart(() => writeIdentity(store.dataDir, { ...store.identity, ...present }, secretFiles))
    await store.until('a refusal', () => store.agent.ledger.journal.waiting > 0)
    expect(storedIdentity()).toMatchObject(present)
    await honour(present.x)
    await store.until('online', () => store.agent.link.isOnline)
    expect(storedIdentity()).toMatchObject(present)
  })

  it('is the former one until the new one was used; rotateAgentKey rejects weak, foreign and unproven keys', async () => {
    store = await openStore()
    const next = fresh()
    expect(await rotate(next, formerKid())).toMatchObject({ kind: 'answered' })
    expect(await rotate(next, formerKid())).toMatchObject({ kind: 'answered' })
    expect((await login(store.identity)).status).toBe(200)
    expect(await row()).toEqual({ x: store.identity.x, next_x: next.x })
    expect((await login({ ...store.identity, ...next })).status).toBe(200)
    expect(await row()).toEqual({ x: next.x, next_x: null })
    expect((await login(store.identity)).status).toBe(401)
    // The agent's login is no longer valid, because its key changed.
    expect(await rotate(fresh(), formerKid())).toMatchObject({ kind: 'refused', status: 401 })
  })

  it('cannot have small order or non-canonical form, nor a proof of another key or agent', async () => {
    store = await openStore()
    const good = fresh()
    const ask = (x: string, proof: string) =>
      store.drive(store.agent.link.call('rotateAgentKey', { publicJwk: publicJwk(x), proof }))
    const weak = [
      '00'.repeat(32),
      `01${'00'.repeat(31)}`,
      `ec${'ff'.repeat(30)}7f`,
      `ed${'ff'.repeat(30)}7f`,
      `ee${'ff'.repeat(30)}ff`,
      '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
    ]
    for (const bytes of weak)
      expect(await ask(Buffer.from(bytes, 'hex').toString('base64url'), 'x')).toMatchObject({
        kind: 'refused',
        status: 400,
      })
    const iat = Math.floor(store.world.clock.wall() / 1_000)
    const claims = { aud: store.identity.agentId, iat, exp: iat + 300, formerKid: formerKid() }
    const own = createSigner(good.x, Buffer.from(good.secret, 'base64url'))
    const { x, secret } = fresh()
    for (const proof of [
      signDocument(DOCUMENT_KINDS.rotation, claims, createSigner(x, Buffer.from(secret, 'base64url'))),
      signDocument(DOCUMENT_KINDS.rotation, { ...claims, aud: 'agt_x' }, own),
      signDocument(DOCUMENT_KINDS.rotation, { ...claims, formerKid: 'AAAAAAAA' }, own),
      signDocument(DOCUMENT_KINDS.enrolment, claims, own),
    ])
      expect(await ask(good.x, proof)).toMatchObject({ kind: 'refused', status: 400 })
    expect((await row()).next_x).toBeNull()
  })
})
