// Puts the distribution's ffmpeg where this Playwright version expects its own build.
'use strict';
const fs = require('fs');
const path = require('path');

const { browsers } = require('/opt/playwright-core/browsers.json');
const { revision } = browsers.find((entry) => entry.name === 'ffmpeg');
const folder = path.join(process.env.PLAYWRIGHT_BROWSERS_PATH, `ffmpeg-${revision}`);
fs.mkdirSync(folder, { recursive: true });
fs.symlinkSync('/usr/bin/ffmpeg', path.join(folder, 'ffmpeg-linux'));
fs.writeFileSync(path.join(folder, 'INSTALLATION_COMPLETE'), '');
