import { z } from 'zod'
import { Id, Success } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { qrPng } from '../../platform/foundation/qr-code.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { rolesFrom } from '../../platform/foundation/roles.ts'

const CODE_TYPES = ['checkin', 'payment', 'profile'] as const

export const generateCodes = operation({
  name: 'generateCodes',
  area: 'scan and go',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Draws QR codes to display in a store.',
  description: 'A code contains `untag://{type}/{storeId}`, which the shopper’s app opens.',
  changes: false,
  request: z.strictObject({
    storeId: Id,
    type: z.enum(CODE_TYPES).optional().describe('Default `checkin`.'),
    size: z
      .int()
      .min(64)
      .max(2_048)
      .optional()
      .describe('Width in pixels; default 512. The image is wider if a module would have less than 3 pixels.'),
  }),
  response: z.strictObject({
    ...Success,
    type: z.enum(CODE_TYPES),
    codes: z.array(
      z.strictObject({ type: z.enum(CODE_TYPES), data: z.string(), imageBase64: z.string().describe('PNG.') }),
    ),
  }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', type: 'checkin', size: 512 },
  async run(call, { storeId, type = 'checkin', size = 512 }) {
    const store = await ownStore(call, storeId)
    const data = `untag://${type}/${store.store_id}`
    return { success: true as const, type, codes: [{ type, data, imageBase64: qrPng(data, size).toString('base64') }] }
  },
})
