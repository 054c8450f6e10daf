/** DISCOVER < ASSIST < GO < GROW < PRIME */
export const PACKAGES = ['DISCOVER', 'ASSIST', 'GO', 'GROW', 'PRIME'] as const
export type Package = (typeof PACKAGES)[number]

/** True if package `have` includes package `need`. */
export function isAtLeast(have: Package, need: Package): boolean {
  return PACKAGES.indexOf(have) >= PACKAGES.indexOf(need)
}
