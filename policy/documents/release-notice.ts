import { z } from 'zod'

/** Release notices between the agents of a store. */

/** Lifetime of a notice, s. The agent signs a new notice for each delivery. */
export const RELEASE_NOTICE_LIFE = 60
/** Time that a gate stays silent for a released unit, s. A newer status from the cloud ends this time. */
export const SILENT_SECONDS = 3_600

/** Proof of the release: a unit of a receipt, or an authorization token. */
const Proof = z.union([
  z.strictObject({ receipt: z.string().min(1).max(1_024), ordinal: z.int().min(0).max(100_000) }),
  z.strictObject({ token: z.string().min(1).max(1_024) }),
])

/** A confirmed release. The proof covers only this unit and the named tag. */
export const AnnouncedRelease = z.strictObject({
  deviceId: z.string().min(1).max(128),
  protectionAction: z.enum(['deactivate_label', 'detach_hard_tag']),
  /** Seconds since 1970. */
  releasedS: z.int().min(0),
  /** Released tag, upper-case hex. `epc` and `tagUid` are absent if the request named no tag. */
  epc: z.string().max(124).optional(),
  tagUid: z.string().max(20).optional(),
  proof: Proof,
})
export type AnnouncedRelease = z.infer<typeof AnnouncedRelease>

/** `release+jwt`, signed by the releasing agent, for the agents of the store. */
export const ReleaseNotice = AnnouncedRelease.extend({
  /** Store id. */
  aud: z.string(),
  iat: z.int().min(0),
  exp: z.int().min(0),
  iss: z.string().min(1).max(128),
})
export type ReleaseNotice = z.infer<typeof ReleaseNotice>
