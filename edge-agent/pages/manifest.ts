import type { Texts } from './texts/texts.ts'

/** The mark of untag: a tag with a check. It is drawn with a margin, so that systems may cut the corners. */
export const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><rect width="64" height="64" rx="12" fill="#0a4fb3"/><path d="M16 24 L30 14 H48 V50 H30 L16 40 Z" fill="#fff"/><circle cx="24" cy="32" r="3" fill="#0a4fb3"/><path d="M31 33 L36 38 L44 26" fill="none" stroke="#0a4fb3" stroke-width="4" stroke-linecap="round" stroke-linejoin="round"/></svg>`

/** Address of the manifest of a device's page. */
export function manifestUrl(page: 'station' | 'gate', deviceId: string): string {
  return `/manifest.webmanifest?${new URLSearchParams({ page, device: deviceId })}`
}

/**
 * Manifest with which a browser installs the page of a device as an app of its own, on the full screen. Contains only
 * what the request contains, so it needs no pairing.
 */
export function manifestOf(page: 'station' | 'gate', deviceId: string, texts: Texts): object {
  const name = page === 'gate' ? texts.gatePage : texts.stationPage
  return {
    id: `/${page}?${new URLSearchParams({ device: deviceId })}`,
    start_url: `/${page}?${new URLSearchParams({ device: deviceId })}`,
    name: `${name} · untag`,
    short_name: name,
    lang: texts.language,
    display: 'fullscreen',
    background_color: '#101418',
    theme_color: '#101418',
    icons: [{ src: '/icon.svg', type: 'image/svg+xml', sizes: 'any', purpose: 'any' }],
  }
}
