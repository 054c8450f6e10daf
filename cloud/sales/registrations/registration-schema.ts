import { z } from 'zod'
import { iso, definedFields, Success } from '../../platform/operations/fields.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import type { RegistrationDetails } from './registrations.ts'

/** Response to a submitted registration. */
export const RegistrationPending = z.strictObject({
  ...Success,
  registrationId: z.string(),
  status: z.literal('pending'),
})

/** Makes the response to a new registration. */
export function pendingAnswer({ registration_id }: Row<'registration'>): z.infer<typeof RegistrationPending> {
  return { success: true, registrationId: registration_id, status: 'pending' }
}

export const REGISTRATION_STATUSES = ['pending', 'approved', 'rejected'] as const

/** A registration for its reviewer and its merchant. */
export const Registration = z.strictObject({
  registrationId: z.string(),
  kind: z.enum(['store', 'account']).describe('`account`: a request without a key; its approval creates an account.'),
  status: z.enum(REGISTRATION_STATUSES),
  companyName: z.string(),
  tradingName: z.string().optional(),
  address: z.strictObject({ street: z.string(), city: z.string(), zip: z.string(), country: z.string() }).optional(),
  phone: z.string().optional(),
  role: z.string().optional(),
  contactEmail: z.string().optional(),
  package: z.string().optional().describe('The package that the merchant requested.'),
  accountId: z.string().optional(),
  storeId: z.string().optional(),
  reason: z.string().optional().describe('Why it was rejected.'),
  submittedAt: z.string(),
  decidedAt: z.string().optional(),
})

/** Converts a row for the API. */
export function toRegistration(row: Row<'registration'>): z.infer<typeof Registration> {
  const { fields, role, contactEmail, package: wish } = JSON.parse(row.details) as RegistrationDetails
  const { street, city, postal_code, country_code } = fields
  const address =
    street !== undefined && city !== undefined && postal_code !== undefined && country_code !== undefined
      ? { street, city, zip: postal_code, country: country_code }
      : undefined
  return {
    registrationId: row.registration_id,
    kind: row.kind,
    status: row.status,
    companyName: row.company_name,
    ...(fields.trading_name !== undefined && { tradingName: fields.trading_name }),
    ...(address && { address }),
    ...(role !== undefined && { role }),
    ...(contactEmail !== undefined && { contactEmail }),
    ...(wish !== undefined && { package: wish }),
    ...definedFields({
      phone: fields.phone ?? null,
      accountId: row.account_id,
      storeId: row.store_id,
      reason: row.reason,
      decidedAt: row.decided_ms === null ? null : iso(row.decided_ms),
    }),
    submittedAt: iso(row.submitted_ms),
  }
}
