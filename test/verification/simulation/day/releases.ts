import type { CloudNode } from '../nodes/cloud-node.ts'
import type { Core } from '../virtual/core.ts'
import type { LedgerOracle } from '../oracles/ledger-oracle.ts'
import type { Tally } from './tally.ts'

/** Counts the units that were released according to these ledgers. */
export function unitsReleasedBy(ledgers: ReadonlyMap<string, LedgerOracle>): number {
  let released = 0
  for (const { rows } of ledgers.values()) {
    const confirmed = new Set(
      rows.flatMap(({ body: { evidence } }) =>
        evidence?.kind === 'outcome' && evidence.outcome === 'confirmed' ? [evidence.redemptionId] : [],
      ),
    )
    for (const { body } of rows) {
      const claim = body.evidence
      if (claim?.kind === 'claim' && claim.rightClass === 'release' && confirmed.has(claim.redemptionId))
        released += claim.ordinals.length
    }
  }
  return released
}

/** Checks that each paid unit was released once, and that the cloud recorded each of these releases. */
export function checkReleases(
  released: number,
  { core, cloud, tally }: { core: Core; cloud: CloudNode; tally: Tally },
): void {
  const db = cloud.disk.reading
  const known =
    db
      ?.prepare<[], { n: number }>(
        "SELECT COUNT(*) AS n FROM unit_right WHERE right_class = 'release' AND state = 'used' AND outcome = 'confirmed'",
      )
      .get()?.n ?? 0
  const toRelease = tally.unitsSold - tally.unitsOfTills
  if (released !== toRelease)
    core.violate('I4', `${toRelease} paid units were carried out, but the ledgers released ${released}`)
  if (known !== released) core.violate('I4', `the ledgers released ${released} units, but the cloud has ${known}`)
}
