// @module-tag extended
import { createHmac } from 'node:crypto'
import { join } from 'node:path'
import { rmSync } from 'node:fs'
import { afterEach, expect, it } from 'vitest'
import type { Json } from '../support/cloud.ts'
import { temporaryFolder } from '../support/databases.ts'
import { runProcess, startProcess, type RunningProcess } from '../support/processes.ts'
import { startReceiver, until, type ReceivedRequest, type Receiver } from '../support/receiver.ts'

const running: RunningProcess[] = []
let receiver: Receiver | undefined
const folder = temporaryFolder('listen')
afterEach(async () => {
  for (const each of running.splice(0).reverse()) await each.stop()
  await receiver?.close()
  rmSync(folder, { recursive: true, force: true })
})

it('events reach a receiver on this machine by untag listen, and by a webhook with --allow-private-targets', async () => {
  const data = join(folder, 'cloud')
  const cloud = await startProcess([
    'cloud',
    '--port',
    '0',
    '--mqtt-port',
    '0',
    '--data',
    data,
    '--allow-private-targets',
  ])
  running.push(cloud)
  const { key } = JSON.parse(
    (await runProcess(['keys', 'create', '--data', data, '--account', 'Shop', '--json'])).stdout,
  ) as Json
  receiver = await startReceiver()
  const { requests } = receiver
  const env = { UNTAG_API: String(cloud.ready['baseUrl']), UNTAG_KEY: key as string }
  const listening = await startProcess(['listen', '--forward-to', receiver.url], { env })
  running.push(listening)
  const triggered = await runProcess(['trigger', 'checkout.completed'], env)
  expect(triggered).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^checkout\.completed whe_\w+\n$/),
    stderr: expect.stringMatching(/^no webhook receives checkout\.completed, only a running untag listen: start it/),
  })
  await until('the event to be forwarded', () => requests.length === 1)
  const { headers, body } = requests[0] as ReceivedRequest
  expect(headers['x-untag-signature']).toBe(
    createHmac('sha256', String(listening.ready['secret'])).update(body).digest('hex'),
  )
  expect(JSON.parse(body)).toMatchObject({
    id: triggered.stdout.trim().split(' ')[1],
    event: 'checkout.completed',
    data: { currency: 'EUR' },
  })

  const answer = await fetch(`${env.UNTAG_API}/registerWebhook`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${env.UNTAG_KEY}` },
    body: JSON.stringify({ url: receiver.url, events: ['product.created'] }),
  })
  const { secret } = (await answer.json()) as Json
  await listening.stop()
  expect(await runProcess(['trigger', 'product.created'], env)).toMatchObject({ code: 0, stderr: '' })
  const toNobody = await runProcess(['trigger', 'checkout.completed', '--json'], env)
  expect(JSON.parse(toNobody.stdout)).toMatchObject({ webhooks: 0, next: expect.stringContaining('untag listen') })
  await until('the webhook', () => requests.length === 2)
  const second = requests[1] as ReceivedRequest
  expect(second.headers['x-untag-signature']).toBe(
    createHmac('sha256', secret as string)
      .update(second.body)
      .digest('hex'),
  )

  expect(await runProcess(['trigger'], env)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('EVENT is missing'),
  })
  expect(await runProcess(['trigger', 'no.event'], env)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('there is no event no.event'),
  })
  expect(await runProcess(['listen', '--forward-to', receiver.url])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('UNTAG_KEY'),
  })
})
