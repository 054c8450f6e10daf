import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { granted, pagesBench, servePages, STATION, type PagesBench, type ServedPages } from '../pages/pages-agent.ts'

let bench: PagesBench
let served: ServedPages
beforeAll(async () => {
  bench = pagesBench()
  bench.answer = () => granted()
  ;(bench.agent.config as { requirePairing: boolean }).requirePairing = false
  served = await servePages(bench)
})
afterAll(() => served.close())

const BODY = JSON.stringify({ deviceId: STATION, text: 'HTTPS://SHOP.EXAMPLE/R/ABCDEF' })

/** Waits for another answer of the agent, and returns how many scans it has processed by then. */
async function scansAfterAnother(): Promise<number> {
  const { status } = await fetch(`${served.url}/v1/status`)
  expect(status).toBe(200)
  return bench.scans.length
}

it('does not treat a request as local if its connection was reset', async () => {
  const { host, hostname, port } = new URL(served.url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.write(
    `POST /v1/scan HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`,
  )
  socket.resetAndDestroy()
  expect(await scansAfterAnother()).toBe(0)
  const { status } = await fetch(`${served.url}/v1/scan`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: BODY,
  })
  expect(status).toBe(200)
  expect(await scansAfterAnother()).toBe(1)
})
