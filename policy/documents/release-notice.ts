import { z } from 'zod'

/** What an agent tells the other agents of its store when it has released a unit. */

/** Life of a notice, seconds: it is signed anew each time that it is sent. */
export const RELEASE_NOTICE_LIFE = 60
/** How long a gate lets a released unit pass, s. News of the item from the cloud ends it earlier. */
export const SILENT_SECONDS = 3_600

/** What verifies the release: a unit of a receipt, or an authorization token. */
const Proof = z.union([
  z.strictObject({ receipt: z.string().min(1).max(1_024), ordinal: z.int().min(0).max(100_000) }),
  z.strictObject({ token: z.string().min(1).max(1_024) }),
])

/** One confirmed release. The proof verifies the unit, the tag that was named, and nothing else. */
export const AnnouncedRelease = z.strictObject({
  deviceId: z.string().min(1).max(128),
  protectionAction: z.enum(['deactivate_label', 'detach_hard_tag']),
  /** Seconds since 1970. */
  releasedS: z.int().min(0),
  /** The released tag, upper-case hex; both absent: no tag was named. */
  epc: z.string().max(124).optional(),
  tagUid: z.string().max(20).optional(),
  proof: Proof,
})
export type AnnouncedRelease = z.infer<typeof AnnouncedRelease>

/** `release+jwt`, signed by the releasing agent, for the agents of the store. */
export const ReleaseNotice = AnnouncedRelease.extend({
  /** The store. */
  aud: z.string(),
  iat: z.int().min(0),
  exp: z.int().min(0),
  iss: z.string().min(1).max(128),
})
export type ReleaseNotice = z.infer<typeof ReleaseNotice>
