import { afterEach, beforeEach, expect, it } from 'vitest'
import { NOTHING_BEGUN } from '../../../../cloud/platform/users/sessions.ts'
import {
  accountsWithNotices,
  expandNotices,
  notifyStaff,
  type StaffNotice,
} from '../../../../cloud/shop/push/staff-notices.ts'
import { alarmTarget } from '../../../../cloud/shop/push/subscriptions.ts'
import { newDatabase, onEveryDatabase, type TestDatabase } from '../../../support/databases.ts'

const TENANT = 'acc_1.test'
const NOW = 1_800_000_000_000
const BROWSERS = 250

const alarm = (n: number, fields: Partial<StaffNotice> = {}): StaffNotice => ({
  id: `evt_${n}`,
  reason: 'gate_alarm',
  storeId: 'st_a',
  page: 'alarms',
  lowest: 'associate',
  ...fields,
})

onEveryDatabase('notices to staff of an account with many browsers', (kind) => {
  let made: TestDatabase
  beforeEach(async () => {
    made = await newDatabase(kind)
    const users = ['usr_one', 'usr_two'].map((id) => ({
      user_id: id,
      account_id: 'acc_1',
      email: `${id}@shop.example`,
      name: '',
      role: 'associate',
      store_ids: id === 'usr_two' ? JSON.stringify(['st_b']) : null,
      sandbox_only: 0,
      mode: 'test',
      invited_by: 'usr_x',
      invitation_hash: null,
      invitation_expires_ms: null,
      password_hash: null,
      created_ms: NOW,
      accepted_ms: NOW,
      last_sign_in_ms: null,
      totp_secret: null,
      totp_step: 0,
      recovery_codes: '[]',
    }))
    const sessions = Array.from({ length: BROWSERS }, (_, n) => ({
      session_id: `ses_${n}`,
      token_hash: `tok_${n}`,
      user_id: n === 0 ? 'usr_two' : 'usr_one',
      mode: 'test',
      state: 'active' as const,
      second_factor: 0,
      user_agent: '',
      created_ms: NOW,
      seen_ms: NOW,
      expires_ms: NOW + 86_400_000,
      ...NOTHING_BEGUN,
    }))
    const subscriptions = sessions.map(({ session_id: id }) => ({
      subscription_id: `psu_${id}`,
      tenant: TENANT,
      kind: 'web',
      target: alarmTarget(id),
      user_id: null,
      store_id: null,
      session_id: id,
      endpoint_hash: id,
      sealed: '',
      failed_in_row: 0,
      created_ms: NOW,
      updated_ms: NOW,
    }))
    await made.database.write(async (db) => {
      const account = { account_id: 'acc_1', name: 'One', package: 'GROW', status: 'active', created_ms: NOW }
      await db.insertInto('account').values(account).execute()
      await db.insertInto('console_user').values(users).execute()
      await db.insertInto('user_session').values(sessions).execute()
      await db.insertInto('push_subscription').values(subscriptions).execute()
    })
  })
  afterEach(async () => {
    await made.database.close()
    await made.remove()
  })

  const notify = (notices: readonly StaffNotice[], tenant = TENANT) =>
    made.database.write((db) => notifyStaff({ db, tenant, nowMs: NOW }, notices))
  const expand = () => expandNotices(made.database, TENANT, NOW)
  const waiting = () => made.database.reads.selectFrom('staff_notice').selectAll().execute()
  const deliveries = () => made.database.reads.selectFrom('push_delivery').selectAll().execute()

  it('take one row in the transaction of their event, and none in an account without browsers', async () => {
    await notify([alarm(1), alarm(2)])
    await notify([alarm(1)])
    await notify([alarm(3)], 'acc_2.test')
    expect((await waiting()).map((row) => row.about_id).toSorted()).toEqual(['evt_1', 'evt_2'])
    expect(await accountsWithNotices(made.database.reads)).toEqual([TENANT])
    expect(await deliveries()).toEqual([])
  })

  it('ring 200 browsers once for all waiting alarms of a store', async () => {
    await notify(Array.from({ length: 100 }, (_, n) => alarm(n)))
    await expand()
    const rows = await deliveries()
    expect([rows.length, new Set(rows.map((row) => row.body)).size]).toEqual([200, 1])
    expect(rows.map((row) => row.subscription_id)).not.toContain('psu_ses_0') // has another store
    expect(await waiting()).toEqual([])
  })

  it('are enqueued for five stores or reasons in one transaction', async () => {
    await notify(Array.from({ length: 12 }, (_, n) => alarm(n, { storeId: `st_${n}` })))
    const counts: number[] = []
    while ((await waiting()).length > 0) {
      await expand()
      counts.push((await deliveries()).length)
    }
    expect(counts).toEqual([1_000, 2_000, 2_400])
  })

  it('leave out the user who caused them, and browsers whose session has ended', async () => {
    await notify([alarm(1, { storeId: 'st_b' })])
    await notify([alarm(2, { storeId: 'st_b', page: 'help', reason: 'help_at_alarm', except: 'usr_one' })])
    await made.database.write((db) => db.deleteFrom('user_session').where('session_id', '>', 'ses_1').execute())
    await expand()
    const about = (await deliveries()).map((row) => [JSON.parse(row.body).id, row.subscription_id])
    expect(about.toSorted()).toEqual([
      ['evt_1', 'psu_ses_0'],
      ['evt_1', 'psu_ses_1'],
      ['evt_2', 'psu_ses_0'],
    ])
  })

  it('are discarded while 1,000 notices or 10,000 deliveries of the account wait', async () => {
    const some = (from: number) => Array.from({ length: 500 }, (_, n) => alarm(from + n, { storeId: `st_${from + n}` }))
    await notify(some(0))
    await notify(some(500))
    await notify([alarm(1_000)])
    expect(await waiting()).toHaveLength(1_000)
    for (let n = 0; n < 12; n++) await expand()
    expect([(await deliveries()).length, (await waiting()).length]).toEqual([10_000, 940])
  })
})
