import { z } from 'zod'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { Id, iso, Success } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { notificationUrlOf } from '../payments/open-payment.ts'
import { currentConfig } from '../payments/queries.ts'
import type { Counts } from './connection.ts'
import { connectionsOf, pullsOf } from './queries.ts'
import { DATA_TYPES, type DataType, type Side } from './connector.ts'

const ALL_TYPES = [...DATA_TYPES.pos, ...DATA_TYPES.erp] as const

export const fetchIntegrations = operation({
  name: 'fetchIntegrations',
  area: 'integrations',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Lists the payment provider of a store, and the systems that it reads, without their credentials.',
  description: 'Each system has its last round by type of data. In the sandbox no system is used.',
  changes: false,
  request: z.strictObject({ storeId: Id }),
  response: z.strictObject({
    ...Success,
    provider: z
      .strictObject({ provider: z.string(), configuredAt: z.string(), notificationUrl: z.string() })
      .optional()
      .describe('Absent if `configurePSP` set none.'),
    systems: z.array(
      z.strictObject({
        side: z.enum(['pos', 'erp']),
        system: z.string(),
        hasCredentials: z.boolean().describe('False: each call must send them.'),
        changedAt: z.string().describe('When its credentials were stored last.'),
        rounds: z.array(
          z.strictObject({
            dataType: z.enum(ALL_TYPES),
            startedAt: z.string(),
            updatedAt: z.string(),
            isComplete: z.boolean().describe('False: the next call goes on.'),
            taken: z.int(),
            failed: z.int(),
          }),
        ),
      }),
    ),
  }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  answer: {
    success: true,
    systems: [
      {
        side: 'pos',
        system: 'shopify',
        hasCredentials: true,
        changedAt: '2026-11-20T08:00:00.000Z',
        rounds: [
          {
            dataType: 'articles',
            startedAt: '2026-11-20T09:00:00.000Z',
            updatedAt: '2026-11-20T09:00:04.000Z',
            isComplete: true,
            taken: 120,
            failed: 2,
          },
        ],
      },
    ],
  },
  async run(call, { storeId }) {
    const store = await ownStore(call, storeId)
    const config = await currentConfig(call.db, storeId)
    const systems = []
    for (const { side, system, sealed, updated_ms: updatedMs } of await connectionsOf(call.db, storeId)) {
      const pulls = await pullsOf(call.db, { storeId, side: side as Side, system })
      const rounds = pulls.map((pull) => {
        const { taken, failed } = JSON.parse(pull.counts) as Counts
        return {
          dataType: pull.data_type as DataType,
          startedAt: iso(pull.started_ms),
          updatedAt: iso(pull.updated_ms),
          isComplete: pull.is_done === 1,
          taken,
          failed,
        }
      })
      systems.push({ side: side as Side, system, hasCredentials: sealed !== null, changedAt: iso(updatedMs), rounds })
    }
    return {
      success: true as const,
      ...(config && {
        provider: {
          provider: config.provider,
          configuredAt: iso(config.created_ms),
          notificationUrl: notificationUrlOf({ provider: config.provider, store_id: store.store_id }, call),
        },
      }),
      systems,
    }
  },
})
