import { statusView } from '../model/status-view.ts'
import type { PageStatus } from '../model/wire.ts'
import type { Texts } from '../texts/texts.ts'

interface HeaderProps {
  title: string
  deviceId: string
  status: PageStatus
  texts: Texts
  reader: Parameters<typeof statusView>[3]
}

/** Header with device, store and the state of the agent. */
export function Header({ title, deviceId, status, texts, reader }: HeaderProps) {
  const { badges, banners } = statusView(status, deviceId, texts, reader)
  return (
    <header>
      <div class="bar">
        <div class="place">
          <h1>{title}</h1>
          <p class="ids">{status.storeName}</p>
        </div>
        <ul class="badges" data-slot="badges">
          {badges.map(({ tone, text }) => (
            <li class="badge" data-tone={tone}>
              {text}
            </li>
          ))}
        </ul>
      </div>
      <div data-slot="banners" role="alert">
        {banners.map(({ tone, text }) => (
          <p class="banner" data-tone={tone}>
            {text}
          </p>
        ))}
      </div>
    </header>
  )
}
