import { createCipheriv, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  addSealingKey,
  discardOtherSealingKeys,
  keysOf,
  loadKeyFiles,
} from '../../../../cloud/platform/authority/key-files.ts'
import { resealAll, sealer, sealingKeyId } from '../../../../cloud/platform/authority/sealing.ts'
import { createCloud } from '../../../../cloud/cloud.ts'
import { connectionOf } from '../../../../cloud/sales/payments/connection.ts'
import { openSecret } from '../../../../cloud/platform/webhooks/secret.ts'
import { realPlatform } from '../../../../host/platform.ts'
import { secretFiles } from '../../../../host/secret-files.ts'
import { startTestCloud, TEST_CONFIG, type TestCloud } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { liveStores } from '../../../support/live-store.ts'

const { random } = realPlatform()

describe('sealed texts', () => {
  const [first, second] = [randomBytes(32), randomBytes(32)]
  const plain = Buffer.from('sk_live_x')

  it('name their key: texts of older keys are opened, and new texts are sealed with the newest key', () => {
    const old = sealer([first], random).seal(plain, 'a/1')
    const ring = sealer([second, first], random)
    expect([ring.open(old, 'a/1'), ring.isCurrent(old), ring.isCurrent(ring.seal(plain, 'a/1'))]).toEqual([
      plain,
      false,
      true,
    ])
    expect(old.startsWith(`${sealingKeyId(first)}.`)).toBe(true)
    expect(() => sealer([second], random).open(old, 'a/1')).toThrow(
      `sealed with the key ${sealingKeyId(first)}, which is missing: restore it from your backup of keys`,
    )
    expect(() => ring.open(old, 'a/2')).toThrow()
    expect(() => ring.open(`${sealingKeyId(second)}.${old.split('.')[1]}`, 'a/1')).toThrow()
    expect(() => ring.open(old.slice(0, -2), 'a/1')).toThrow()
  })

  it('without a key name are opened with all keys in turn', () => {
    const iv = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', first, iv).setAAD(Buffer.from('a/1'))
    const unnamed = Buffer.concat([iv, cipher.update(plain), cipher.final(), cipher.getAuthTag()]).toString('base64url')
    const ring = sealer([second, first], random)
    expect([ring.open(unnamed, 'a/1'), ring.isCurrent(unnamed)]).toEqual([plain, false])
    expect(() => sealer([second], random).open(unnamed, 'a/1')).toThrow()
  })
})

onEveryDatabase('changing the sealing key', (kind) => {
  let cloud: TestCloud
  beforeAll(async () => {
    cloud = await startTestCloud(kind)
  })
  afterAll(() => cloud.stop())

  it('seals all texts again, so that a cloud with only the new key reads them', async () => {
    const key = await cloud.key('secret', 'live')
    const [storeId = ''] = await liveStores(cloud, key)
    const config = {
      baseUrl: 'https://psp.example',
      apiKey: 'key-of-the-shop',
      webhookSecret: 'secret-of-the-notifications',
    }
    await cloud.ok(key, 'configurePSP', { storeId, provider: 'custom', config })
    const made = await cloud.ok(key, 'registerWebhook', {
      url: 'https://shop.example/hook',
      events: ['checkout.completed'],
    })
    const rolled = await cloud.ok(key, 'rollWebhookSecret', { webhookId: made.webhookId })
    await cloud.ok(await cloud.key('secret'), 'fetchStores')

    const { database } = cloud.db
    const [before] = (await loadKeyFiles(keysOf(cloud.keyFolder), secretFiles, random)).sealingKeys
    const keys = addSealingKey(keysOf(cloud.keyFolder), secretFiles, random)
    const [current] = keys
    if (!before || !current) throw new Error('no key')
    const ring = sealer(keys, random)
    expect(await resealAll(database, ring)).toBeGreaterThanOrEqual(8)
    expect(await resealAll(database, ring)).toBe(0)
    // No column of any table contains a text sealed with the old key.
    const tables = (await database.reads.introspection.getTables()).filter((table) => !table.name.startsWith('pg_'))
    expect(tables.length).toBeGreaterThan(30)
    for (const { name } of tables) {
      const rows = JSON.stringify(
        await database.reads
          .selectFrom(name as never)
          .selectAll()
          .execute(),
      )
      expect([name, rows.includes(`${sealingKeyId(before)}.`)]).toEqual([name, false])
    }

    discardOtherSealingKeys(keysOf(cloud.keyFolder), secretFiles, current)
    const keyFiles = await loadKeyFiles(keysOf(cloud.keyFolder), secretFiles, random)
    expect(keyFiles.sealingKeys.map((each) => sealingKeyId(each))).toEqual([sealingKeyId(current)])
    const again = await cloud.db.again()
    const { services } = cloud.cloud
    const next = await createCloud({
      config: TEST_CONFIG,
      platform: cloud.platform,
      log: { info: () => undefined, warn: () => undefined, error: () => undefined },
      database: again,
      keyFiles,
      images: services.images,
      outgoing: services.outgoing,
    })
    try {
      const psp = await again.reads.selectFrom('psp_config').selectAll().executeTakeFirstOrThrow()
      expect(connectionOf(psp, next.services)).toHaveProperty('createSession')
      const hook = await again.reads.selectFrom('webhook').selectAll().executeTakeFirstOrThrow()
      expect(openSecret(next.services.authority.sealer, hook.webhook_id, hook.secret)).toBe(rolled.secret)
      expect(openSecret(next.services.authority.sealer, hook.webhook_id, hook.old_secret ?? '')).toBe(made.secret)
      const answer = await next.app.request('/api/v1/fetchStores', {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: '{}',
      })
      expect(answer.status).toBe(200)
    } finally {
      await next.stop()
      await again.close()
    }
  })
})
