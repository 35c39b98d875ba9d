import asyncio
import sys


async def main(host, port, text):
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET /{text} HTTP/1.0\r\n\r\n".encode())
    print((await reader.read()).decode())
    writer.close()


asyncio.run(main(*sys.argv[1:]))
