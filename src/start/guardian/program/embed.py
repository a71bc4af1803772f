# SPDX-License-Identifier: BSL-1.0
"""embed.py FILE HEADER: writes the bytes of a file as the inside of an array."""
import sys

with open(sys.argv[1], 'rb') as program, open(sys.argv[2], 'w') as header:
    image = program.read()
    for at in range(0, len(image), 20):
        header.write(''.join(f'{byte},' for byte in image[at:at + 20]) + '\n')
