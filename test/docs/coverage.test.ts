import { expect, it } from 'vitest'
import { OPERATION_TABLE } from '../../cloud/service/operation-table.ts'
import { EVENT_TYPES } from '../../cloud/platform/webhooks/event-types.ts'
import {
  SPECIFIED_EVENTS,
  SPECIFIED_OPERATIONS,
  unsentEvents,
  untestedConnectorEvents,
  untestedOperations,
  untestedRules,
} from './coverage.ts'

it('has every operation and every event of the specification', () => {
  expect(SPECIFIED_OPERATIONS.filter((name) => !OPERATION_TABLE.has(name))).toEqual([])
  expect(SPECIFIED_EVENTS.filter((name) => !EVENT_TYPES.has(name))).toEqual([])
})

it('has a separate test for every operation', () => {
  expect(
    untestedOperations(),
    'test/cloud needs a test that calls each operation by its name, beside the tests of all operations',
  ).toEqual([])
})

// test/cloud/platform/operations/emitted-events.test.ts causes every other event, and checks what a receiver gets.
it('has a separate test for every event of a connected system', () => {
  expect(untestedConnectorEvents()).toEqual([])
})

it('finds a sender of every declared event', () => {
  expect(
    unsentEvents(),
    'emit each event with `call.emit`, or remove it from cloud/platform/webhooks/event-types.ts',
  ).toEqual([])
})

it('has a test of every denial reason, gate alarm, gate rule and driver', () => {
  expect(untestedRules(), 'write a test of the first tier, which `npm test` runs').toEqual([])
})
