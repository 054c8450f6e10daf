import { expect, it } from 'vitest'
import { sealerFromText } from '../../../../cloud/platform/authority/sealing.ts'
import { tenantOf } from '../../../../cloud/platform/foundation/caller.ts'
import type { OutgoingAnswer } from '../../../../cloud/platform/outgoing/outgoing-http.ts'
import type { Services } from '../../../../cloud/platform/operations/operation.ts'
import type { Row } from '../../../../cloud/platform/persistence/schema.ts'
import { connectionOf, sealConfig } from '../../../../cloud/sales/payments/connection.ts'
import { virtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'

const ANSWER = { id: 'tr_12345678', status: 'open', amount: { value: '1.00', currency: 'EUR' } }

/** Connections to a provider that answers only when the test lets it. */
function silentProvider() {
  const platform = virtualPlatform()
  const sent: (() => void)[] = []
  const send = () =>
    new Promise<OutgoingAnswer>((resolve) =>
      sent.push(() => resolve({ status: 200, headers: {}, body: Buffer.from(JSON.stringify(ANSWER)) } as never)),
    )
  const sealer = sealerFromText('key of the test', platform.random)
  const services = {
    authority: { sealer },
    platform,
    outgoing: { send },
    config: { allowPrivateTargets: true },
  } as unknown as Services
  const connect = (account: string) => {
    const row = { config_id: `psp_${account}`, tenant: tenantOf(account, 'live'), provider: 'mollie' }
    const sealed = sealConfig(services, row.config_id, { apiKey: 'live_abcdefghijklmnop' })
    return connectionOf({ ...row, sealed } as Row<'psp_config'>, services)
  }
  return { connect, sent }
}

/** Runs what is due without time, such as continuations of promises. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

it('notifications about one payment ask the provider once at a time, and few share the next answer', async () => {
  const { connect, sent } = silentProvider()
  const { readNotification } = connect('acc_joined')
  const yes = async () => true
  const notification = { header: () => undefined, nowMs: 0, isOurs: yes, isOurRefund: yes, isOurCharge: yes }
  const all = Array.from({ length: 40 }, () => readNotification({ ...notification, body: 'id=tr_12345678' }))
  const outcomes = Promise.allSettled(all)
  await settled()
  expect(sent).toHaveLength(1)
  sent[0]?.()
  await settled()
  expect(sent).toHaveLength(2)
  sent[1]?.()
  expect((await outcomes).map(({ status }) => status)).toEqual([
    ...Array.from({ length: 11 }, () => 'fulfilled'),
    ...Array.from({ length: 29 }, () => 'rejected'),
  ])
  // A question after the last answer is asked anew.
  const later = readNotification({ ...notification, body: 'id=tr_12345678' })
  await settled()
  expect(sent).toHaveLength(3)
  sent[2]?.()
  expect(await later).toEqual([])
})

it('an account has a share of the requests to payment providers, and leaves room for others', async () => {
  const { connect, sent } = silentProvider()
  const ask = (account: string, n: number) => connect(account).findSession(`tr_${n}`)
  const many = Promise.allSettled(Array.from({ length: 200 }, (_, n) => ask('acc_many', n)))
  await settled()
  expect(sent).toHaveLength(50)
  const other = ask('acc_other', 1)
  await settled()
  expect(sent).toHaveLength(51)
  for (let n = 0; n < sent.length; n++) {
    sent[n]?.()
    await settled()
  }
  expect((await many).filter(({ status }) => status === 'rejected')).toHaveLength(50)
  expect(await other).toBeUndefined()
})
