import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { agentReadiness } from '../../bin/commands/doctor.ts'
import { PROGRAM_HEADER, programHeader } from '../../policy/version.ts'

it('untag doctor reads emergency and findings only from /readyz of an agent', async () => {
  let [program, body] = ['agent' as 'agent' | 'other', '{"emergency":true}']
  const server = createServer((request, response) => {
    if (program === 'agent') response.setHeader(PROGRAM_HEADER, programHeader({ program }))
    response.end(request.url === '/readyz' ? body : '{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  expect(await agentReadiness(port)).toEqual({ emergency: true, devices: [] })
  const findings = [{ code: 'echo', detail: 'set "echo"', isWarning: false }]
  const devices = [{ deviceId: 'dev_a', state: 'degraded', detail: 'set "echo"', findings }]
  body = JSON.stringify({ emergency: false, online: true, devices })
  expect(await agentReadiness(port)).toEqual({ emergency: false, devices })
  for (body of ['{}', 'no JSON', 'null']) expect(await agentReadiness(port)).toBeUndefined()
  ;[program, body] = ['other', '{"emergency":true}']
  expect(await agentReadiness(port)).toBeUndefined()
  await new Promise((resolve) => server.close(resolve))
  expect(await agentReadiness(port)).toBeUndefined()
})
