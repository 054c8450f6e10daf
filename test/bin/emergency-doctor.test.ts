import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { hasEmergency } from '../../bin/port-checks.ts'
import { PROGRAM_HEADER, programHeader } from '../../policy/program-header.ts'

it('untag doctor reads the emergency state only from /readyz of an agent', async () => {
  let [program, body] = ['agent' as 'agent' | 'other', '{"emergency":true}']
  const server = createServer((request, response) => {
    if (program === 'agent') response.setHeader(PROGRAM_HEADER, programHeader({ program }))
    response.end(request.url === '/readyz' ? body : '{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  expect(await hasEmergency(port)).toBe(true)
  for (body of ['{"emergency":false}', '{}', 'no JSON', 'null']) expect(await hasEmergency(port)).toBe(false)
  ;[program, body] = ['other', '{"emergency":true}']
  expect(await hasEmergency(port)).toBe(false)
  await new Promise((resolve) => server.close(resolve))
  expect(await hasEmergency(port)).toBe(false)
})
