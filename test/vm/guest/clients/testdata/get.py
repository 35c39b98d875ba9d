import sys

import requests

print(requests.get(sys.argv[1], timeout=600).text)
