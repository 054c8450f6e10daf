/** DISCOVER < ASSIST < GO < GROW < PRIME */
export const PACKAGES = ['DISCOVER', 'ASSIST', 'GO', 'GROW', 'PRIME'] as const
export type Package = (typeof PACKAGES)[number]

/** Whether a package includes what another one is needed for. */
export function isAtLeast(have: Package, need: Package): boolean {
  return PACKAGES.indexOf(have) >= PACKAGES.indexOf(need)
}
