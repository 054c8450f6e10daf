import { deviceTitle } from '../model/status-view.ts'
import type { PageDevice } from '../model/wire.ts'
import type { Advice, Texts } from '../texts/texts.ts'
import { Frame } from './frame.tsx'

/** Which device this screen stands at. `missing`: the one that was asked for is not driven here. */
export function DeviceList({
  texts,
  devices,
  missing,
}: {
  texts: Texts
  devices: readonly PageDevice[]
  missing: boolean
}) {
  return (
    <Frame title={`${texts.chooseDevice} · untag`} texts={texts} kind="list">
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
                <a class="button" href={address('/station', device, texts)}>
                  {texts.stationPage}
                </a>
                {device.deviceType === 'exit_gate' ? (
                  <a class="button" href={address('/gate', device, texts)}>
                    {texts.gatePage}
                  </a>
                ) : null}
              </p>
            </li>
          ))}
        </ul>
        <p>
          <a class="language" href={`/setup?${new URLSearchParams({ lang: texts.language })}`}>
            {texts.setup.title}
          </a>
        </p>
      </main>
    </Frame>
  )
}

/** For whoever asks from a machine that the agent does not speak to. */
export function NotHere({ texts }: { texts: Texts }) {
  const { what, todo }: Advice = texts.notHere
  return (
    <Frame title="untag" texts={texts} kind="list">
      <main>
        <h1>{what}</h1>
        <p>{todo}</p>
      </main>
    </Frame>
  )
}

function address(path: string, { deviceId }: PageDevice, { language }: Texts): string {
  return `${path}?${new URLSearchParams({ device: deviceId, lang: language })}`
}
