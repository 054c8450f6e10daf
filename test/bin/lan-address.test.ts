import { expect, it } from 'vitest'
import { lanAddress } from '../../bin/commands/edge.ts'

it.each([
  ['10.0.0.7', [], 'https://cloud.example/api/v1', 'http://10.0.0.7:8090'],
  ['fd00::7', [], 'https://cloud.example/api/v1', 'http://[fd00::7]:8090'],
  ['0.0.0.0', ['gate.lan:8090'], 'https://cloud.example/api/v1', 'http://gate.lan:8090'],
  ['::', [], 'https://cloud.example/api/v1', undefined],
  // On another machine this address would reach that machine itself.
  ['127.0.0.1', ['gate.lan:8090'], 'https://cloud.example/api/v1', undefined],
  ['localhost', [], 'https://cloud.example/api/v1', undefined],
  ['::1', [], 'https://cloud.example/api/v1', undefined],
  // Cloud and agents are on one machine.
  ['127.0.0.1', [], 'http://127.0.0.1:8080/api/v1', 'http://127.0.0.1:8090'],
  ['127.0.0.1', [], 'http://[::1]:8080/api/v1', 'http://127.0.0.1:8090'],
])('other agents reach an agent on %s with the names %j and the cloud %s at %s', (host, hosts, cloud, address) => {
  expect(lanAddress({ scheme: 'http', host, port: 8090, hosts, cloud })).toEqual(
    address === undefined ? {} : { address },
  )
})
