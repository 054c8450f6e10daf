/** Roles of users, highest first. A role may do everything that a lower role may do. */
export const ROLES = ['owner', 'admin', 'manager', 'associate', 'viewer'] as const
export type Role = (typeof ROLES)[number]

/** This role and all higher roles. */
export function rolesFrom(lowest: Role): readonly Role[] {
  return ROLES.slice(0, ROLES.indexOf(lowest) + 1)
}

/** True if `role` is as high as `other`, or higher. */
export function isRoleAtLeast(role: Role, other: Role): boolean {
  return ROLES.indexOf(role) <= ROLES.indexOf(other)
}
