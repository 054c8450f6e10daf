import type { OpenIdConfig } from '../cloud/platform/foundation/config.ts'
import { text, url, WrongUsage, type Values } from './options.ts'

/** Settings of the sign-in with OpenID Connect. */
export const openIdSettings = {
  oidcIssuer: url({
    flag: 'oidc-issuer',
    env: 'UNTAG_OIDC_ISSUER',
    help: 'Let users sign in to the console with this OpenID Connect provider. See docs/guides/openid-connect.md',
    protocols: ['https:', 'http:'],
  }),
  oidcClientId: text({
    flag: 'oidc-client-id',
    env: 'UNTAG_OIDC_CLIENT_ID',
    help: 'Client id of this cloud at the provider',
    placeholder: 'ID',
  }),
  oidcClientSecret: text({
    flag: 'oidc-client-secret',
    env: 'UNTAG_OIDC_CLIENT_SECRET',
    help: 'Client secret of this cloud at the provider',
    placeholder: 'SECRET',
    isSecret: true,
  }),
  oidcName: text({
    flag: 'oidc-name',
    env: 'UNTAG_OIDC_NAME',
    help: 'Name of the provider on the sign-in page',
    placeholder: 'NAME',
    fallback: 'OpenID Connect',
  }),
  oidcDomains: text({
    flag: 'oidc-domains',
    env: 'UNTAG_OIDC_DOMAINS',
    help: 'Domains of the e-mail addresses that may sign in with the provider, separated by commas. Default: all',
    placeholder: 'LIST',
  }),
}

/** Reads the settings of the provider. Undefined without --oidc-issuer. */
export function openIdConfig(settings: Values<typeof openIdSettings>): OpenIdConfig | undefined {
  const { oidcIssuer: issuer, oidcClientId: clientId, oidcClientSecret: clientSecret, oidcName: name } = settings
  if (issuer === undefined) {
    if (clientId !== undefined || clientSecret !== undefined || settings.oidcDomains !== undefined)
      throw new WrongUsage(['--oidc-client-id, --oidc-client-secret and --oidc-domains need --oidc-issuer'])
    return undefined
  }
  const missing = [
    ...(clientId === undefined ? ['--oidc-client-id'] : []),
    ...(clientSecret === undefined ? ['--oidc-client-secret-file or UNTAG_OIDC_CLIENT_SECRET'] : []),
  ]
  if (clientId === undefined || clientSecret === undefined)
    throw new WrongUsage([`--oidc-issuer also needs ${missing.join(', and ')}`])
  const { protocol, hostname } = new URL(issuer)
  if (protocol === 'http:' && !['localhost', '127.0.0.1', '[::1]'].includes(hostname))
    throw new WrongUsage(['--oidc-issuer must begin with https://, because the client secret is sent there'])
  const domains = (settings.oidcDomains ?? '').split(',').map((domain) => domain.trim().toLowerCase().replace(/^@/, ''))
  return { issuer, clientId, clientSecret, name, domains: domains.filter((domain) => domain !== '') }
}
