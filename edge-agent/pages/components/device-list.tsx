import { deviceTitle } from '../model/status-view.ts'
import type { PageDevice } from '../model/wire.ts'
import type { Advice } from '../texts/texts.ts'
import { Frame, type Localization } from './frame.tsx'

/** List of devices to choose from. `missing`: this agent does not have the requested device. */
export function DeviceList({
  localization,
  devices,
  missing,
}: {
  localization: Localization
  devices: readonly PageDevice[]
  missing: boolean
}) {
  const { texts } = localization
  return (
    <Frame title={`${texts.chooseDevice} · untag`} localization={localization} kind="list">
      <main>
        <h1>{texts.chooseDevice}</h1>
        {missing ? <p>{texts.noSuchDevice}</p> : null}
        {devices.length === 0 ? <p>{texts.noDevices}</p> : null}
        <ul class="devices">
          {devices.map((device) => (
            <li>
              <h2>{deviceTitle(device, texts)}</h2>
              <p class="ids">
                {device.deviceId} · {texts.deviceStates[device.state]}
              </p>
              <p class="row">
                <a class="button" href={address('/station', device)}>
                  {texts.stationPage}
                </a>
                {device.deviceType === 'exit_gate' ? (
                  <a class="button" href={address('/gate', device)}>
                    {texts.gatePage}
                  </a>
                ) : null}
              </p>
            </li>
          ))}
        </ul>
        <p>
          <a class="language" href="/setup">
            {texts.setup.title}
          </a>
        </p>
      </main>
    </Frame>
  )
}

/** Page for browsers on other machines, which may not open the set-up page. */
export function NotHere({ localization }: { localization: Localization }) {
  const { what, todo }: Advice = localization.texts.notHere
  return (
    <Frame title="untag" localization={localization} kind="list">
      <main>
        <h1>{what}</h1>
        <p>{todo}</p>
      </main>
    </Frame>
  )
}

function address(path: string, { deviceId }: PageDevice): string {
  return `${path}?${new URLSearchParams({ device: deviceId })}`
}
