import { Lora } from 'next/font/google';

const lora = Lora({ subsets: ['latin'] });

export const metadata = { title: 'Exported' };

export default function Layout({ children }) {
  return (
    <html lang="en">
      <body className={lora.className}>{children}</body>
    </html>
  );
}
