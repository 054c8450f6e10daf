/** A package that `npm ci --omit dev` installs on some platform. */
interface LockedPackage {
  name: string
  version: string
  licence: string | undefined
  isOptional: boolean
}

interface LockEntry {
  version: string
  license?: string
  dev?: boolean
  optional?: boolean
}

/**
 * The distinct production packages of package-lock.json, sorted by name and version. `read`: reads a file of the
 * project.
 */
export function lockedPackages(read: (file: string) => string): LockedPackage[] {
  const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, LockEntry> }
  // Licences that stand in the LICENSE file of a package, but not in its package.json.
  const stated = JSON.parse(read('scripts/stated-licences.json')) as Record<string, string>
  const found = Object.entries(packages)
    .filter(([path, { dev }]) => path !== '' && dev !== true)
    .map(([path, { version, license, optional }]) => {
      const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
      return { name, version, licence: license ?? stated[name], isOptional: optional === true }
    })
  const byId = new Map(found.map((each) => [`${each.name}@${each.version}`, each]))
  return [...byId.entries()].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each)
}

/** Licences that require only a copy of the licence and of the copyright notices. */
const PERMISSIVE: ReadonlySet<string> = new Set(['MIT', 'ISC', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD'])
/** libvips is a separate shared library of the optional package `sharp`. Users can replace it, as the LGPL requires. */
const isLibvips = ({ name, isOptional }: LockedPackage) => isOptional && name.startsWith('@img/sharp-')

/** MPL-2.0 covers only changes to the files of the package, and untag changes none. */
const isWebPush = ({ name }: LockedPackage) => name === 'web-push'

/** True if allowed licences satisfy the SPDX expression of the package. */
export function isAllowed(found: LockedPackage): boolean {
  const isFine = (id: string) =>
    PERMISSIVE.has(id) || (id === 'LGPL-3.0-or-later' && isLibvips(found)) || (id === 'MPL-2.0' && isWebPush(found))
  const expression = (found.licence ?? '').replaceAll(/[()]/g, '')
  // Expressions with both AND and OR are not supported.
  if (expression.includes(' AND ')) return !expression.includes(' OR ') && expression.split(' AND ').every(isFine)
  return expression.split(' OR ').some(isFine)
}

/** Generates docs/reference/licences.md. */
export function licencesPage(packages: readonly LockedPackage[]): string {
  const counts = new Map<string, number>()
  for (const { licence = 'none' } of packages) counts.set(licence, (counts.get(licence) ?? 0) + 1)
  const summary = [...counts].toSorted(([a, n], [b, m]) => m - n || (a < b ? -1 : 1))
  return `# Licences

untag is under the [MIT licence](../../LICENSE). This page lists the packages that it installs for production, as \`package-lock.json\` names them. \`npm run generate\` writes the page. A test fails for a licence that is not allowed.

Allowed are ${[...PERMISSIVE].join(', ')}. The LGPL is allowed for libvips alone: a shared library that the optional package \`sharp\` brings for one platform at a time. Without \`sharp\`, only image uploads are missing.

To get a software bill of materials in CycloneDX, run \`npm run --silent sbom > sbom.json\`.

| licence | packages |
|---|---|
${summary.map(([licence, n]) => `| ${licence} | ${n} |`).join('\n')}

| package | version | licence | installed |
|---|---|---|---|
${packages.map(({ name, version, licence = 'none', isOptional }) => `| ${name} | ${version} | ${licence} | ${isOptional ? 'if possible' : 'always'} |`).join('\n')}
`
}
